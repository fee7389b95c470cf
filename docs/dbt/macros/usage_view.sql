{# A view with e-mail addresses of users, or its masked twin with the same columns. #}
{% macro usage_view(name) -%}
{{ source('usage', name ~ ('_masked' if var('usage_etl_masked', false) else '')) }}
{%- endmacro %}
