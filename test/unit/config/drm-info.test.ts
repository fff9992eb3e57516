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
  t.like(drmOf(info, NAMES), { scheme: 'cenc', keyUrl: undefined, key: Buffer.from(KEY, 'hex') });
  t.deepEqual(drmOf(info, NAMES)?.pssh, [Buffer.from(PSSH, 'hex')]);
  t.like(drmOf(info, { ...NAMES, stream: 'two' }), { scheme: 'cbcs', keyUrl: 'skd://k', keyformat: 'fairplay' });
  t.is(drmOf(info.slice(0, 1), { ...NAMES, stream: 'two' }), undefined);
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
