import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { FileKeys } from '../../../../src/access/jwt/file-keys.ts';
import { EC, keySet, RSA } from '../../../support/access/tokens.ts';

test('a file of keys is followed, and one that cannot be used leaves the last keys', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-jwt-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'keys');
  const reasons: string[] = [];
  const log = pino({}, { write: (line: string) => void reasons.push(String(JSON.parse(line).reason)) });
  let now = 0;
  const source = new FileKeys(path, log, () => now);
  const algorithms = async () => {
    now += 2000;
    return (await source.keys()).map(({ algorithm }) => algorithm);
  };
  await t.throwsAsync(algorithms, { message: /there are no keys for tokens: ENOENT/ });
  await writeFile(path, EC.pem);
  t.deepEqual(await algorithms(), ['ES256']);
  await writeFile(path, 'something else');
  t.deepEqual(await algorithms(), ['ES256']);
  t.deepEqual(await algorithms(), ['ES256']);
  t.is(reasons.length, 2);
  t.regex(reasons[1] ?? '', /neither JSON of a JWK Set nor a public key in PEM/);
  await writeFile(path, keySet({ a: RSA, b: EC }));
  t.deepEqual(await algorithms(), ['RS256', 'ES256']);
});
