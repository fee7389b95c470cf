select usage_date
from {{ source('usage', 'dim_date') }}
