{{/* The six services: where each is in the values, its port, the services that it calls (its settings `<service>_url`), and what it needs.
     tests/conformance/test_chart.py compares this table with the settings classes. */}}
{{- define "kubevnfm.services" -}}
lcm-api: {key: lcmApi, port: 9890, calls: [infra-k8s, mgmt-executor, vim-registry], outside: true, data: true, access: true, metrics: /kubevnfm/v1/metrics}
infra-openstack: {key: infraOpenstack, port: 9895, listener: HEALTH_, calls: [lcm-api, vim-registry], outside: true, cache: true, code: true}
infra-k8s: {key: infraK8s, port: 9894, calls: [lcm-api, vim-registry], outside: true, cache: true, code: true}
mgmt-executor: {key: mgmtExecutor, port: 9892, calls: [lcm-api, vim-registry], sends: credentials-receiver, outside: true, cache: true, code: true}
vim-registry: {key: vimRegistry, port: 9891, calls: [credentials-receiver, lcm-api], outside: true}
credentials-receiver: {key: credentialsReceiver, port: 9893, calls: [lcm-api], access: true}
{{- end }}

{{- define "kubevnfm.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride }}
{{- else if contains (default "kubevnfm" .Values.nameOverride) .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (default "kubevnfm" .Values.nameOverride) | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "kubevnfm.selector" -}}
app.kubernetes.io/name: {{ default "kubevnfm" .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kubevnfm.labels" -}}
{{ include "kubevnfm.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: kubevnfm
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* The image of one service. Context: root, name, values. A digest decides; the tag is then for the reader alone. */}}
{{- define "kubevnfm.image" -}}
{{- $image := .values.image -}}
{{- $repository := default (printf "%s/%s" .root.Values.image.repository .name) $image.repository -}}
{{- with .root.Values.image.registry }}{{ . }}/{{ end }}{{ $repository }}:{{ default (default .root.Chart.AppVersion .root.Values.image.tag) $image.tag }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* A value as text of an environment variable: lists with commas, mappings as name=value, whole numbers without exponent. */}}
{{- define "kubevnfm.text" -}}
{{- if kindIs "slice" . -}}{{ join "," . }}
{{- else if kindIs "map" . -}}
{{- $pairs := list -}}{{- range $name, $value := . -}}{{- $pairs = append $pairs (printf "%s=%v" $name $value) -}}{{- end -}}{{ join "," $pairs }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}{{ printf "%.0f" . }}
{{- else -}}{{ toString . }}
{{- end -}}
{{- end }}

{{/* The Secret with the key ring, the tokens and the passwords. */}}
{{- define "kubevnfm.secret" -}}
{{- default (printf "%s-secrets" (include "kubevnfm.fullname" .)) .Values.secrets.existingSecret -}}
{{- end }}

{{/* The keys of that Secret. Context: root, all: also those that these values do not need. */}}
{{- define "kubevnfm.secretKeys" -}}
{{- $rabbitmq := .root.Values.rabbitmq -}}
{{- $keys := list "keys" "callback-keys" "credentials-token" -}}
{{- if or .all $rabbitmq.users.enabled $rabbitmq.operator.enabled -}}
{{- $keys = append $keys "rabbitmq-observer" -}}
{{- end -}}
{{- range $name, $_ := include "kubevnfm.services" .root | fromYaml -}}
{{- $keys = append $keys (printf "token-%s" $name) -}}
{{- if or $.all $rabbitmq.users.enabled (not $rabbitmq.urlsSecret) -}}
{{- $keys = append $keys (printf "rabbitmq-%s" $name) -}}
{{- end -}}
{{- if or $.all $.root.Values.mongodb.users.enabled (not $.root.Values.mongodb.urlsSecret) -}}
{{- $keys = append $keys (printf "mongodb-%s" $name) -}}
{{- end -}}
{{- end -}}
{{ sortAlpha $keys | join "," }}
{{- end }}

{{- define "kubevnfm.scheme" -}}{{ .Values.tls.enabled | ternary "https" "http" }}{{- end }}

{{- define "kubevnfm.rabbitmqHost" -}}
{{- if .Values.rabbitmq.operator.enabled -}}{{ include "kubevnfm.fullname" . }}-rabbitmq{{- else -}}{{ .Values.rabbitmq.host }}{{- end -}}
{{- end }}

{{/* Hosts, database and options of a service's MongoDB URL. Context: root, database. */}}
{{- define "kubevnfm.mongodbPlace" -}}
{{- $percona := .root.Values.mongodb.percona -}}
{{- $hosts := .root.Values.mongodb.hosts -}}
{{- $options := .root.Values.mongodb.options -}}
{{- if $percona.enabled -}}
{{- $set := printf "%s-mongodb-rs0" (include "kubevnfm.fullname" .root) -}}
{{- $hosts = list -}}
{{- range $index := until (int $percona.size) -}}
{{- $hosts = append $hosts (printf "%s-%d.%s.%s.svc.%s:27017" $set $index $set $.root.Release.Namespace $.root.Values.clusterDomain) -}}
{{- end -}}
{{- $options = "replicaSet=rs0" -}}
{{- end -}}
{{ join "," $hosts }}/{{ .database }}{{ with $options }}?{{ . }}{{ end }}
{{- end }}

{{/* The security context of every container: what the standard `restricted` of Pod Security asks for. */}}
{{- define "kubevnfm.containerSecurity" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end }}

{{/* The security context of a pod. Context: root, code: whether it confines code of packages itself. */}}
{{- define "kubevnfm.podSecurity" -}}
runAsNonRoot: true
{{- with .root.Values.podSecurity.runAsUser }}
runAsUser: {{ . }}
runAsGroup: {{ . }}
{{- end }}
{{- with .root.Values.podSecurity.fsGroup }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
{{- if and .code (eq .root.Values.sandbox.mode "profile") }}
seccompProfile: {type: Localhost, localhostProfile: {{ .root.Values.sandbox.seccompProfile | quote }}}
{{- with .root.Values.sandbox.appArmorProfile }}
{{- if eq . "Unconfined" }}
appArmorProfile: {type: Unconfined}
{{- else }}
appArmorProfile: {type: Localhost, localhostProfile: {{ . | quote }}}
{{- end }}
{{- end }}
{{- else }}
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- end }}

{{/* Whether a service's probes need a client certificate. Context: values. */}}
{{- define "kubevnfm.isMutual" -}}
{{- if and .settings.tls_client_ca (ne (toString .settings.tls_client_required) "false") }}yes{{ end -}}
{{- end }}

{{/* One probe. Context: root, values, path. The kubelet has no client certificate, so with mutual TLS a program in the container asks. */}}
{{- define "kubevnfm.probe" -}}
{{- if include "kubevnfm.isMutual" .values }}
exec:
  command: [/usr/bin/env, KUBEVNFM_HEALTH_PATH={{ .path }}, python, /opt/kubevnfm/healthy.py]
{{- else }}
httpGet: {path: {{ .path }}, port: http, scheme: {{ include "kubevnfm.scheme" .root | upper }}}
{{- end }}
{{- end }}

{{/* The public URL of a service with an Ingress or a route; empty without. Context: values. */}}
{{- define "kubevnfm.publicUrl" -}}
{{- if .ingress.enabled -}}{{ empty .ingress.tlsSecret | ternary "http" "https" }}://{{ .ingress.host }}
{{- else if .httpRoute.enabled -}}{{ .httpRoute.scheme }}://{{ first .httpRoute.hostnames }}
{{- end -}}
{{- end }}

{{/* Where mgmt-executor sends the credentials of workload clusters; empty: nowhere, as that needs HTTPS. */}}
{{- define "kubevnfm.receiverUrl" -}}
{{- $public := include "kubevnfm.publicUrl" .Values.credentialsReceiver -}}
{{- if .Values.tls.enabled -}}https://{{ include "kubevnfm.fullname" . }}-credentials-receiver:9893/credentials/v1/workload-clusters
{{- else if hasPrefix "https://" $public -}}{{ $public }}/credentials/v1/workload-clusters
{{- end -}}
{{- end }}
