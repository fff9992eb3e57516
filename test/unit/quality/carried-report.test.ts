import test from 'ava';
import { carriedReport, queryWithoutReport, urlWithoutReport } from '../../../src/quality/carried-report.ts';

test('a report in the query is found wherever it stands, with spaces as + or %20', (t) => {
  t.is(carriedReport('CMCD=br%3D1', {}), 'br=1');
  t.is(carriedReport('_HLS_msn=5&CMCD=br%3D(1+2%203)&x=y', {}), 'br=(1 2 3)');
  t.is(carriedReport('xCMCD=1&CMCDx=2&cmcd=3', {}), undefined);
  t.is(carriedReport('', {}), undefined);
});

test('a report that cannot be decoded, or is too long, is a malformed one', (t) => {
  for (const value of ['%', '%zz', '%ff', 'x'.repeat(9000)]) t.is(carriedReport(`CMCD=${value}`, {}), '');
});

test('the header fields of a report are joined, and the query goes first', (t) => {
  const headers = { 'cmcd-object': 'br=1', 'cmcd-session': 'sid="x"', 'cmcd-status': '' };
  t.is(carriedReport('', headers), 'br=1,sid="x"');
  t.is(carriedReport('CMCD=br%3D2', headers), 'br=2');
  t.is(carriedReport('', { 'cmcd-request': ['bl=1', 'su'] }), 'bl=1,su');
});

test('a report is removed from queries and URLs, and nothing else changes', (t) => {
  for (const [query, rest] of [
    ['', ''],
    ['a=b', 'a=b'],
    ['CMCD=x', ''],
    ['CMCD', ''],
    ['a=b&CMCD=x', 'a=b'],
    ['CMCD=x&a=b%20c&&d', 'a=b%20c&&d'],
    ['a=CMCD=x&CMCD=y&xCMCD=z&CMCD=w', 'a=CMCD=x&xCMCD=z'],
  ] as const) {
    t.is(queryWithoutReport(query), rest);
    t.is(
      urlWithoutReport(`http://a/CMCD=q?${query}`),
      query === rest || rest !== '' ? `http://a/CMCD=q?${rest}` : 'http://a/CMCD=q',
    );
  }
  t.is(urlWithoutReport('/CMCD=x'), '/CMCD=x');
});
