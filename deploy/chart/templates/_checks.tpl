{{/* Whether several pods may write the folder of packages. */}}
{{- define "kubevnfm.isShared" -}}
{{- if and .Values.lcmApi.persistence.enabled (eq .Values.lcmApi.persistence.accessMode "ReadWriteMany") }}yes{{ end -}}
{{- end }}

{{/* What one value alone cannot say. Each fault begins with the path of the value. */}}
{{- define "kubevnfm.checks" -}}
{{- $faults := list -}}
{{- $rabbitmq := .Values.rabbitmq -}}
{{- if not (or $rabbitmq.urlsSecret $rabbitmq.host $rabbitmq.operator.enabled) -}}
{{- $faults = append $faults "rabbitmq.host: the name of the broker expected, or rabbitmq.urlsSecret, or rabbitmq.operator.enabled=true" -}}
{{- end -}}
{{- if and $rabbitmq.operator.enabled (or $rabbitmq.urlsSecret $rabbitmq.host) -}}
{{- $faults = append $faults "rabbitmq.operator.enabled: false expected with rabbitmq.host or rabbitmq.urlsSecret, which name another broker" -}}
{{- end -}}
{{- if and $rabbitmq.users.enabled (not (and $rabbitmq.users.apiUrl $rabbitmq.users.adminSecret)) -}}
{{- $faults = append $faults "rabbitmq.users: apiUrl and adminSecret expected" -}}
{{- end -}}
{{- $mongodb := .Values.mongodb -}}
{{- if not (or $mongodb.urlsSecret $mongodb.hosts $mongodb.percona.enabled) -}}
{{- $faults = append $faults "mongodb.hosts: the servers expected, or mongodb.urlsSecret, or mongodb.percona.enabled=true" -}}
{{- end -}}
{{- if and $mongodb.percona.enabled (or $mongodb.urlsSecret $mongodb.hosts) -}}
{{- $faults = append $faults "mongodb.percona.enabled: false expected with mongodb.hosts or mongodb.urlsSecret, which name another database" -}}
{{- end -}}
{{- if and $mongodb.users.enabled (not $mongodb.users.adminUrlSecret) -}}
{{- $faults = append $faults "mongodb.users.adminUrlSecret: the Secret with the administrator's URL expected" -}}
{{- end -}}
{{- range $key := list "lcmApi" "credentialsReceiver" -}}
{{- $values := index $.Values $key -}}
{{- $modes := $values.settings.auth_modes -}}
{{- if and (or (has "basic" $modes) (has "certificate" $modes)) (not $.Values.auth.usersSecret) -}}
{{- $faults = append $faults (printf "auth.usersSecret: a Secret with users.toml expected, as %s.settings.auth_modes has basic or certificate (docs/install-chart.md)" $key) -}}
{{- end -}}
{{- if or (not $modes) (has "none" $modes) -}}
{{- $faults = append $faults (printf "%s.settings.auth_modes: basic, bearer, keystone or certificate expected, as the service listens beyond loopback" $key) -}}
{{- end -}}
{{- if and $values.ingress.enabled (not $values.ingress.host) -}}
{{- $faults = append $faults (printf "%s.ingress.host: a name expected" $key) -}}
{{- end -}}
{{- if and $values.httpRoute.enabled (not (and $values.httpRoute.hostnames $values.httpRoute.parentRefs)) -}}
{{- $faults = append $faults (printf "%s.httpRoute: hostnames and parentRefs expected" $key) -}}
{{- end -}}
{{- end -}}
{{- range $name, $service := include "kubevnfm.services" . | fromYaml -}}
{{- $values := index $.Values $service.key -}}
{{- if and $values.autoscaling.enabled (not $.Values.keda.prometheusAddress) -}}
{{- $faults = append $faults (printf "keda.prometheusAddress: the address of a Prometheus expected with %s.autoscaling.enabled" $service.key) -}}
{{- end -}}
{{- if gt (int $values.autoscaling.minReplicas) (int $values.autoscaling.maxReplicas) -}}
{{- $faults = append $faults (printf "%s.autoscaling.minReplicas: at most maxReplicas expected" $service.key) -}}
{{- end -}}
{{- end -}}
{{- $most := .Values.lcmApi.autoscaling.enabled | ternary .Values.lcmApi.autoscaling.maxReplicas .Values.lcmApi.replicas -}}
{{- if and (gt (int $most) 1) (ne (include "kubevnfm.isShared" .) "yes") -}}
{{- $faults = append $faults "lcmApi.persistence.accessMode: ReadWriteMany expected with several replicas of lcm-api, which share the files of packages" -}}
{{- end -}}
{{- if and (eq .Values.sandbox.mode "profile") (eq .Values.sandbox.appArmorProfile "Unconfined") -}}
{{- $namespace := lookup "v1" "Namespace" "" .Release.Namespace -}}
{{- $enforced := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "" (default dict $namespace) -}}
{{- if has $enforced (list "restricted" "baseline") -}}
{{- $faults = append $faults (printf "sandbox.appArmorProfile: the name of a profile on the nodes expected, or none on nodes without AppArmor, because namespace %s enforces the Pod Security standard %s, which refuses Unconfined" .Release.Namespace $enforced) -}}
{{- end -}}
{{- end -}}
{{- $secret := include "kubevnfm.secret" . -}}
{{- $found := lookup "v1" "Secret" .Release.Namespace $secret -}}
{{- if $found -}}
{{- $missing := list -}}
{{- range $key := splitList "," (include "kubevnfm.secretKeys" (dict "root" . "all" false)) -}}
{{- if not (index (default dict $found.data) $key) -}}
{{- $missing = append $missing $key -}}
{{- end -}}
{{- end -}}
{{- with $missing -}}
{{- $faults = append $faults (printf "secrets: the Secret %s in the namespace %s lacks %s: add them (docs/install-chart.md says what each is)" $secret $.Release.Namespace (join ", " .)) -}}
{{- end -}}
{{- else if and .Release.IsUpgrade (not .Values.secrets.existingSecret) -}}
{{- $faults = append $faults (printf "secrets: the Secret %s in the namespace %s expected, because new keys would read no secret in the database: restore it, or name yours with secrets.existingSecret. Commands that do not ask the cluster (helm template, --dry-run=client, most GitOps controllers) see no Secret: use --dry-run=server there, or secrets.existingSecret" $secret .Release.Namespace) -}}
{{- end -}}
{{- with $faults -}}
{{- fail (join "; " .) -}}
{{- end -}}
{{- end }}
