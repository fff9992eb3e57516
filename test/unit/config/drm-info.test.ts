import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { ConfigError } from '../../../src/config/config-error.ts';
import { drmOf, readDrmInfo } from '../../../src/config/drm-info.ts';

const ID = '572543f964e34dc68ba9ba9ef91d4364';
const KEY = '16cf4232a86364b519e1982a27d90f1e';
const PSSH = `000000327073736800000000edef8ba979d64acea3c827dcd51d21ed000000121210${ID}`;
const KEYS = `<KeyId>${ID}</KeyId><Key>${KEY}</Key><Iv>${ID}</Iv>`;
const NAMES = { vhost: 'default', app: 'app', stream: 'one' };

function file(t: ExecutionContext, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-drm-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'drm.xml');
  writeFileSync(path, text);
  return path;
}

const entry = (content: string): string => `<DRMInfo><DRM>${content}</DRM></DRMInfo>`;

test('the first entry that matches counts', (t) => {
  const one = `<StreamName>o*</StreamName><CencProtectScheme>cenc</CencProtectScheme>${KEYS}<Pssh>${PSSH}</Pssh>`;
  const all = `<CencProtectScheme>cbcs</CencProtectScheme>${KEYS}<FairPlayKeyUrl>skd://k</FairPlayKeyUrl>`;
  const info = readDrmInfo(file(t, `<DRMInfo><DRM>${one}</DRM><DRM>${all}</DRM></DRMInfo>`));
  t.like(drmOf(info, NAMES)?.[0], { scheme: 'cenc', keyUrl: undefined, key: Buffer.from(KEY, 'hex') });
  t.deepEqual(drmOf(info, NAMES)?.[0].pssh, [Buffer.from(PSSH, 'hex')]);
  t.like(drmOf(info, { ...NAMES, stream: 'two' })?.[0], { scheme: 'cbcs', keyUrl: 'skd://k', keyformat: 'fairplay' });
  t.is(drmOf(info.slice(0, 1), { ...NAMES, stream: 'two' }), undefined);
});

test('keys that follow the first one, in order', (t) => {
  const next = (id: string): string =>
    `<NextKey><KeyId>${id.repeat(16)}</KeyId><Key>${KEY}</Key><Iv>${ID}</Iv><Pssh>${PSSH}</Pssh></NextKey>`;
  const keys = `<CencProtectScheme>cenc</CencProtectScheme>${KEYS}<Pssh>${PSSH}</Pssh>${next('aa')}${next('bb')}`;
  const found = drmOf(readDrmInfo(file(t, entry(keys))), NAMES) ?? [];
  t.deepEqual(
    found.map(({ scheme, keyId }) => [scheme, keyId.toString('hex')]),
    [ID, 'aa'.repeat(16), 'bb'.repeat(16)].map((id) => ['cenc', id]),
  );
});

const SCHEME = '<CencProtectScheme>cbcs</CencProtectScheme>';
const PROBLEMS: Readonly<Record<string, readonly [content: string, problem: RegExp]>> = {
  'a short key': [`${SCHEME}${KEYS.replace(KEY, KEY.slice(2))}<Pssh>${PSSH}</Pssh>`, /Key must be 16 bytes/],
  'a key of other digits': [`${SCHEME}${KEYS.replace(KEY, `${KEY.slice(2)}zz`)}<Pssh>${PSSH}</Pssh>`, /Key must be/],
  'no IV': [`${SCHEME}<KeyId>${ID}</KeyId><Key>${KEY}</Key><Pssh>${PSSH}</Pssh>`, /Iv must be 16 bytes/],
  'no scheme': [`${KEYS}<Pssh>${PSSH}</Pssh>`, /CencProtectScheme must be cbcs or cenc/],
  'nothing for players': [`${SCHEME}${KEYS}`, /needs Pssh or FairPlayKeyUrl/],
  'a box that is cut off': [`${SCHEME}${KEYS}<Pssh>${PSSH.slice(0, -2)}</Pssh>`, /Pssh must be a whole pssh box/],
  'FairPlay with cenc': [
    `<CencProtectScheme>cenc</CencProtectScheme>${KEYS}<FairPlayKeyUrl>skd://k</FairPlayKeyUrl>`,
    /FairPlay needs cbcs/,
  ],
  'a URL with a quotation mark': [`${SCHEME}${KEYS}<FairPlayKeyUrl>skd://"</FairPlayKeyUrl>`, /is no URL/],
  'an unknown key format': [`${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><Keyformat>x</Keyformat>`, /Keyformat must be/],
  'an element of older versions': [`${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><KMSUrl>x</KMSUrl>`, /KMSUrl is not supported/],
  'an unknown element': [`${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><Keys/>`, /Keys is no element of DRM/],
  'a further key of the same id': [
    `${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><NextKey>${KEYS}<Pssh>${PSSH}</Pssh></NextKey>`,
    /KeyId is that of another key/,
  ],
  'a further key for another key system': [
    `${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><NextKey>${KEYS.replace(ID, KEY)}<FairPlayKeyUrl>skd://k</FairPlayKeyUrl></NextKey>`,
    /of the same key systems/,
  ],
  'a further key at the same URL': [
    `${SCHEME}${KEYS}<FairPlayKeyUrl>skd://k</FairPlayKeyUrl><NextKey>${KEYS.replace(ID, KEY)}<FairPlayKeyUrl>skd://k</FairPlayKeyUrl></NextKey>`,
    /FairPlayKeyUrl is that of another key/,
  ],
  'a further key without an IV': [
    `${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><NextKey><KeyId>${KEY}</KeyId><Key>${KEY}</Key><Pssh>${PSSH}</Pssh></NextKey>`,
    /Iv must be 16 bytes/,
  ],
  'a scheme in a further key': [
    `${SCHEME}${KEYS}<Pssh>${PSSH}</Pssh><NextKey>${SCHEME}${KEYS.replace(ID, KEY)}<Pssh>${PSSH}</Pssh></NextKey>`,
    /CencProtectScheme is no element of NextKey/,
  ],
  'two keys': [`${SCHEME}${KEYS}${KEYS}<Pssh>${PSSH}</Pssh>`, /KeyId is there twice/],
};

for (const [name, [content, problem]] of Object.entries(PROBLEMS)) {
  test(`a file with ${name} is rejected, and the key is not shown`, (t) => {
    const path = file(t, entry(content));
    const { message } = t.throws(() => readDrmInfo(path), { instanceOf: ConfigError, message: problem });
    t.false(message.includes(KEY.slice(2)));
  });
}

test('files that are missing, of another kind or empty are rejected', (t) => {
  t.throws(() => readDrmInfo('/nowhere/drm.xml'), { instanceOf: ConfigError });
  t.throws(() => readDrmInfo(file(t, '<Server/>')), { message: /the root element must be DRMInfo/ });
  t.throws(() => readDrmInfo(file(t, '<DRMInfo/>')), { message: /has no DRM element/ });
  t.throws(() => readDrmInfo(file(t, '<DRMInfo><DRM>')), { instanceOf: ConfigError });
});
