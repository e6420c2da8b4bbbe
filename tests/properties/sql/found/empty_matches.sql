-- case 1/14: an empty match directly after another counts
SELECT regexp_replace('a%', 'a*', 'x', 'g'), regexp_replace('baac', 'a*', 'x', 'g'), regexp_replace('', 'a*', 'x', 'g');
SELECT regexp_count('baac', 'a*'), regexp_replace('baac', 'a*', 'x', 1, 3);
SELECT * FROM regexp_matches('baac', 'a*', 'g');
SELECT regexp_split_to_array('aaXbaac', 'a*'), regexp_split_to_array('abc', ''), regexp_split_to_array('xyz', '^');
