{# A view with e-mail addresses of users, or its masked twin with the same columns. #}
{% macro usage_view(of, name) -%}
{{ source('usage_detail', name ~ '_masked') if var('usage_etl_masked', false) else source(of, name) }}
{%- endmacro %}
