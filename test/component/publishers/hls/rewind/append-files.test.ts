import { mkdtemp, readFile, readlink, readdir, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { AppendFiles } from '../../../../../src/publishers/hls/rewind/append-files.ts';
import { RunFiles } from '../../../../../src/publishers/hls/rewind/run-files.ts';
import { StreamFolder } from '../../../../../src/publishers/hls/rewind/stream-folder.ts';

const NAMES = { vhost: 'v', app: 'a', stream: 's', kind: 'llhls' };

async function temporary(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-append-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Open files of this process below a folder. */
async function openBelow(folder: string): Promise<string[]> {
  const links = await Promise.all(
    (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
  );
  return links.filter((path) => path.startsWith(folder)).map((path) => path.slice(folder.length + 1));
}

test('lines are added in order, also to files that were closed for others', async (t) => {
  const folder = await temporary(t);
  const files = new AppendFiles(2);
  const names = ['0', '1', '2', '3'];
  for (let line = 0; line < 20; line++)
    await Promise.all(names.map((name) => files.append(join(folder, name), `${line}\n`)));
  t.is(files.size, 2);
  const lines = Array.from({ length: 20 }, (_, line) => `${line}\n`).join('');
  for (const name of names) t.is(await readFile(join(folder, name), 'utf8'), lines);
  for (const name of names) await files.close(join(folder, name));
  t.deepEqual(await openBelow(folder), []);
  await files.append(join(folder, '0'), 'after\n');
  t.is(await readFile(join(folder, '0'), 'utf8'), `${lines}after\n`);
  await files.close(join(folder, '0'));
});

test('a file that cannot be opened, or is a link, gets no lines, and is tried again', async (t) => {
  const folder = await temporary(t);
  const files = new AppendFiles(2);
  await symlink(join(folder, 'outside'), join(folder, 'link'));
  await t.throwsAsync(files.append(join(folder, 'link'), 'line\n'), { code: 'ELOOP' });
  t.is(files.size, 0);
  await rm(join(folder, 'link'));
  await files.append(join(folder, 'link'), 'line\n');
  t.is(await readFile(join(folder, 'link'), 'utf8'), 'line\n');
  await files.close(join(folder, 'link'));
});

test('journals of a run stay open until it is closed', async (t) => {
  const folder = await temporary(t);
  const files = new RunFiles(folder);
  const facts = { duration: 2, wallClock: 0, discontinuity: false, discontinuitySequence: 0, gap: true, breaks: '' };
  const list = 'chunklist_0_video_abcdefgh_llhls.m3u8';
  const stored = Array.from({ length: 1002 }, (_, msn) => {
    const segment = { list, name: `seg_0_${msn}_video_abcdefgh_llhls.m4s`, msn, ...facts };
    return { segment, body: undefined };
  });
  for (const part of [stored.slice(0, 1000), stored.slice(1000)]) await files.store(part);
  t.regex((await openBelow(folder)).join(' '), /^run_1000_\w{8}\.journal$/);
  await files.close();
  t.deepEqual(await openBelow(folder), []);
  const kept = (await new RunFiles(folder).load(() => t.fail())).get(list) ?? [];
  t.deepEqual(
    kept.map(({ msn }) => msn),
    Array.from({ length: 1002 }, (_, msn) => msn),
  );
});

test('an initialization that an earlier run of the server began is replaced', async (t) => {
  const folder = await temporary(t);
  const name = 'init_0_video_abcdefgh_llhls.m4s';
  await new RunFiles(folder).write(name, [Buffer.from('half of one that was')]);
  await new RunFiles(folder).write(name, [Buffer.from('whole')]);
  t.is(await readFile(join(folder, name), 'utf8'), 'whole');
  t.deepEqual(await readdir(folder), [name]);
});

test('the newest state is read, whatever was cut off after it', async (t) => {
  const root = await temporary(t);
  const folder = new StreamFolder(root, NAMES);
  t.is(await folder.readState(), undefined);
  for (let msn = 0; msn < 3; msn++) await folder.writeState({ msn });
  t.deepEqual(await folder.readState(), { msn: 2 });
  const path = join(root, 'v/a/s/llhls/state.journal');
  const cut = new AppendFiles(1);
  await cut.append(path, '{"msn":3');
  await cut.close(path);
  const next = new StreamFolder(root, NAMES);
  t.deepEqual(await next.readState(), { msn: 2 });
  await next.writeState({ msn: 4 });
  t.is(await readFile(path, 'utf8'), '{"msn":4}\n');
  await folder.close();
  await next.close();
  t.deepEqual(await openBelow(root), []);
});

test('states take a bounded part of the disk', async (t) => {
  const root = await temporary(t);
  const folder = new StreamFolder(root, NAMES);
  const kicked = Array.from({ length: 50 }, () => 'x'.repeat(100));
  for (let msn = 0; msn < 100; msn++) {
    await folder.writeState({ msn, kicked });
    t.deepEqual(await folder.readState(), { msn, kicked });
  }
  t.true((await stat(join(root, 'v/a/s/llhls/state.journal'))).size <= 64 * 1024);
  await folder.close();
});
