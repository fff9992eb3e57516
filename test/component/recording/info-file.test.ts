import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { appendInfo } from '../../../src/recording/info-file.ts';
import { entriesOf, infoOf } from '../../support/recording/info.ts';

const CHILD = new URL('../../support/recording/info-child.ts', import.meta.url).pathname;
const EACH = 60;

test('two processes and a dead one share an info file, and readers always find it whole', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-info-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'info.xml');
  const ids = ['a', 'b'];
  // a process that was killed leaves its lock
  const dead = spawn(process.execPath, ['-e', 'process.kill(process.pid, "SIGKILL")']);
  await once(dead, 'exit');
  const home = `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  writeFileSync(`${path}.lock`, `${home} ${dead.pid}`);
  const children = ids.map((id) => spawn(process.execPath, [CHILD, path, id, String(EACH)], { stdio: 'inherit' }));
  const exits = children.map(async (child) => (await once(child, 'exit'))[0] as number);
  let readings = 0;
  while (children.some(({ exitCode, signalCode }) => exitCode === null && signalCode === null)) {
    if (existsSync(path)) entriesOf(readFileSync(path, 'utf8'));
    readings++;
    await delay(2);
  }
  t.deepEqual(await Promise.all(exits), [0, 0]);
  t.true(readings > 10);
  await appendInfo(path, infoOf(0, { id: 'c' }));
  const entries = entriesOf(readFileSync(path, 'utf8'));
  for (const id of ids) {
    const sequences = entries.filter((entry) => entry.id === id).map(({ sequence }) => Number(sequence));
    t.deepEqual(sequences, [...Array(EACH).keys()]);
  }
  t.is(entries.length, 2 * EACH + 1);
  t.deepEqual(readdirSync(folder), ['info.xml']);
});
