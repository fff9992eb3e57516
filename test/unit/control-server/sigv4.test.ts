import test from 'ava';
import { awsHeaders } from '../../../src/control-server/sigv4.ts';

// the public test suite of Signature Version 4
const CREDENTIALS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
  service: 'service',
};
const NOW = Date.UTC(2015, 7, 30, 12, 36, 0);
const body = Buffer.alloc(0);

const VECTORS: Readonly<Record<string, readonly [method: string, url: string, signature: string]>> = {
  'get-vanilla': [
    'GET',
    'https://example.amazonaws.com/',
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  'post-vanilla': [
    'POST',
    'https://example.amazonaws.com/',
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ],
  'get-vanilla-query-order-key-case': [
    'GET',
    'https://example.amazonaws.com/?Param2=value2&Param1=value1',
    'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  ],
};

test('a query is sorted by names, and then by values', (t) => {
  const signed = (query: string) =>
    awsHeaders(CREDENTIALS, { method: 'GET', url: `https://example.amazonaws.com/?${query}`, body }, NOW).Authorization;
  // as `a=1`, `a=2`, `a-b=0`: a name that begins another comes first, and `-` is less than `=`
  t.is(signed('a-b=0&a=2&a=1'), signed('a=1&a=2&a-b=0'));
  t.not(signed('a-b=0&a=1'), signed('a-b=1&a=0'));
});

for (const [name, [method, url, expected]] of Object.entries(VECTORS)) {
  test(`signs ${name}`, (t) => {
    t.deepEqual(awsHeaders(CREDENTIALS, { method, url, body }, NOW), {
      'X-Amz-Date': '20150830T123600Z',
      Authorization:
        'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ' +
        `SignedHeaders=host;x-amz-date, Signature=${expected}`,
    });
  });
}
