{# A condition on source_id: the sources that the variable usage_etl_sources names, or all. #}
{% macro only_sources(column='source_id') -%}
{%- set slugs = var('usage_etl_sources', []) -%}
{%- if slugs | length > 0 -%} {{ column }} in ('{{ slugs | join("', '") }}') {%- else -%} true {%- endif -%}
{%- endmacro %}
