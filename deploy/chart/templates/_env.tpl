{{/* The environment of one service. Context: root, name, service (its row of the table), values. */}}
{{- define "kubevnfm.env" -}}
{{- $root := .root -}}
{{- $values := .values -}}
{{- $service := .service -}}
{{- $secret := include "kubevnfm.secret" $root -}}
{{- $prefix := printf "KUBEVNFM_%s_" (.name | upper | replace "-" "_") -}}
{{- $database := printf "kubevnfm_%s" (.name | replace "-" "_") -}}
- {name: {{ $prefix }}{{ $service.listener }}HOST, value: {{ $root.Values.listenAddress | quote }}}
- {name: {{ $prefix }}{{ $service.listener }}PORT, value: {{ $service.port | quote }}}
{{- if $root.Values.rabbitmq.urlsSecret }}
- {name: {{ $prefix }}AMQP_URL, valueFrom: {secretKeyRef: {name: {{ $root.Values.rabbitmq.urlsSecret }}, key: {{ .name }}}}}
{{- else }}
- {name: RABBITMQ_PASSWORD, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: rabbitmq-{{ .name }}}}}
- name: {{ $prefix }}AMQP_URL
  value: {{ printf "%s://%s:$(RABBITMQ_PASSWORD)@%s:%d/%s" ($root.Values.rabbitmq.tls | ternary "amqps" "amqp") .name (include "kubevnfm.rabbitmqHost" $root) (int $root.Values.rabbitmq.port) $root.Values.rabbitmq.path | quote }}
{{- end }}
- {name: {{ $prefix }}AMQP_DECLARES, value: {{ $root.Values.rabbitmq.declares | quote }}}
{{- if $root.Values.mongodb.urlsSecret }}
- {name: {{ $prefix }}MONGO_URL, valueFrom: {secretKeyRef: {name: {{ $root.Values.mongodb.urlsSecret }}, key: {{ .name }}}}}
{{- else }}
- {name: MONGODB_PASSWORD, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: mongodb-{{ .name }}}}}
- name: {{ $prefix }}MONGO_URL
  value: {{ printf "mongodb://%s:$(MONGODB_PASSWORD)@%s" .name (include "kubevnfm.mongodbPlace" (dict "root" $root "database" $database)) | quote }}
{{- end }}
- {name: {{ $prefix }}MONGO_DATABASE, value: {{ $database }}}
- {name: {{ $prefix }}KEYS, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: keys}}}
- {name: {{ $prefix }}INTERNAL_TOKEN, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: token-{{ .name }}}}}
{{- $tokens := list }}
{{- range $peer := $service.calls }}
{{- if not (and (eq $.name "vim-registry") (eq $peer "credentials-receiver")) }}
{{- $variable := printf "TOKEN_%s" ($peer | upper | replace "-" "_") }}
{{- $tokens = append $tokens (printf "%s=$(%s)" $peer $variable) }}
- {name: {{ $variable }}, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: token-{{ $peer }}}}}
{{- end }}
- name: {{ $prefix }}{{ $peer | upper | replace "-" "_" }}_URL
  value: {{ printf "%s://%s-%s:%d" (include "kubevnfm.scheme" $root) (include "kubevnfm.fullname" $root) $peer (int (index (include "kubevnfm.services" $root | fromYaml) $peer).port) }}
{{- end }}
- {name: {{ $prefix }}PEER_TOKENS, value: {{ join "," $tokens | quote }}}
{{- if or (eq .name "vim-registry") (eq .name "credentials-receiver") }}
- {name: {{ $prefix }}CREDENTIALS_TOKEN, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: credentials-token}}}
{{- end }}
{{- if eq .name "credentials-receiver" }}
- {name: {{ $prefix }}MASTER_KEYS, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: callback-keys}}}
{{- end }}
{{- if eq .name "mgmt-executor" }}
- {name: {{ $prefix }}CALLBACK_MASTER_KEYS, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: callback-keys}}}
{{- if not (hasKey $values.settings "receiver_url") }}
- {name: {{ $prefix }}RECEIVER_URL, value: {{ include "kubevnfm.receiverUrl" $root | quote }}}
{{- end }}
{{- if and $root.Values.tls.enabled (not $values.settings.receiver_ca_file) }}
- {name: {{ $prefix }}RECEIVER_CA_FILE, value: /etc/kubevnfm/tls/ca.crt}
{{- end }}
{{- end }}
{{- if and (eq .name "lcm-api") (not $values.settings.public_url) }}
{{- with include "kubevnfm.publicUrl" $values }}
- {name: {{ $prefix }}PUBLIC_URL, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- if and $service.access $root.Values.auth.usersSecret }}
- {name: {{ $prefix }}AUTH_USERS_FILE, value: /etc/kubevnfm/users/users.toml}
{{- end }}
{{- if $service.data }}
- {name: {{ $prefix }}DATA_DIR, value: /var/lib/kubevnfm/{{ .name }}}
{{- end }}
{{- if $service.cache }}
- {name: {{ $prefix }}CACHE_DIR, value: /var/cache/kubevnfm/{{ .name }}}
{{- end }}
{{- if $service.code }}
- {name: {{ $prefix }}TRUST_PACKAGES, value: {{ eq $root.Values.sandbox.mode "trust" | quote }}}
{{- end }}
{{- if $root.Values.tls.enabled }}
- {name: {{ $prefix }}TLS_CERTIFICATE, value: /etc/kubevnfm/tls/tls.crt}
- {name: {{ $prefix }}TLS_KEY, value: /etc/kubevnfm/tls/tls.key}
- {name: {{ $prefix }}INTERNAL_TLS_CA, value: /etc/kubevnfm/tls/ca.crt}
- {name: {{ $prefix }}INTERNAL_TLS_CERTIFICATE, value: /etc/kubevnfm/tls/tls.crt}
- {name: {{ $prefix }}INTERNAL_TLS_KEY, value: /etc/kubevnfm/tls/tls.key}
{{- end }}
{{- range $setting, $value := $values.settings }}
- {name: {{ $prefix }}{{ upper $setting }}, value: {{ include "kubevnfm.text" $value | quote }}}
{{- end }}
{{- range $setting, $place := $values.secretSettings }}
- {name: {{ $prefix }}{{ upper $setting }}, valueFrom: {secretKeyRef: {name: {{ $place.secret }}, key: {{ $place.key }}}}}
{{- end }}
{{- with concat $root.Values.extraEnv $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
