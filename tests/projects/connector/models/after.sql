select date_day, opened, closed from {{ ref('connector__daily_metrics') }} where opened > 0 or closed > 0
