import test from 'ava';
import { keyAttributes, keyLines } from '../../../../src/packaging/drm/key-tags.ts';

const keyId = Buffer.alloc(16, 0xab);
const iv = Buffer.alloc(16, 7);
const common = { keyId, iv, key: Buffer.alloc(16), keyUrl: undefined, keyformat: 'fairplay' } as const;
const pssh = (system: string, data: string, version = '00', ids = ''): Buffer => {
  const body = `70737368${version}000000${system.replaceAll('-', '')}${ids}${(data.length / 2).toString(16).padStart(8, '0')}${data}`;
  return Buffer.from((body.length / 2 + 4).toString(16).padStart(8, '0') + body, 'hex');
};
const WIDEVINE = pssh('edef8ba9-79d6-4ace-a3c8-27dcd51d21ed', '0102');
const PLAYREADY = pssh('9a04f079-9840-4286-ab92-e65be0885f95', 'aabbcc');
const OTHER = pssh('1077efec-c0b2-4d02-ace3-3c1e52e2fb4b', '', '01', `00000001${'ab'.repeat(16)}`);

test('attributes of each key system', (t) => {
  t.deepEqual(keyAttributes({ ...common, scheme: 'cenc', pssh: [WIDEVINE, PLAYREADY, OTHER] }), [
    `METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${WIDEVINE.toString('base64')}",KEYID=0x${'ab'.repeat(16)},` +
      'KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed",KEYFORMATVERSIONS="1"',
    'METHOD=SAMPLE-AES-CTR,URI="data:text/plain;charset=UTF-16;base64,qrvM",KEYFORMAT="com.microsoft.playready",KEYFORMATVERSIONS="1"',
    `METHOD=SAMPLE-AES-CTR,URI="data:text/plain;base64,${OTHER.toString('base64')}",` +
      'KEYFORMAT="urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b",KEYFORMATVERSIONS="1"',
  ]);
});

test('FairPlay, and a key that is fetched as it is', (t) => {
  const fairPlay = { ...common, scheme: 'cbcs', pssh: [], keyUrl: 'skd://k' } as const;
  t.deepEqual(keyAttributes(fairPlay), [
    'METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"',
  ]);
  t.deepEqual(keyAttributes({ ...fairPlay, keyUrl: 'https://keys/1', keyformat: 'identity' }), [
    `METHOD=SAMPLE-AES,URI="https://keys/1",IV=0x${'07'.repeat(16)},KEYFORMAT="identity",KEYFORMATVERSIONS="1"`,
  ]);
});

test('lines where keys change', (t) => {
  t.is(keyLines(['A', 'B']), '#EXT-X-KEY:A\n#EXT-X-KEY:B\n');
  t.is(keyLines(['A'], ['A']), '');
  t.is(keyLines(['B'], ['A']), '#EXT-X-KEY:B\n');
  t.is(keyLines(undefined, ['A']), '#EXT-X-KEY:METHOD=NONE\n');
  t.is(keyLines(undefined), '');
});
