select carrier, name as airline from {{ raw('airlines') }}
