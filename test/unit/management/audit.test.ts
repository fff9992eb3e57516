import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { jsonLogger } from '../../../src/log/log.ts';
import { AuditLog, type AuditEntry } from '../../../src/management/audit/log.ts';
import { verify } from '../../../src/management/audit/verify.ts';
import { until } from '../../support/time/until.ts';

const KEY = 'known to the auditor';
const entry = (path: string): AuditEntry => ({
  user: 'kiln',
  remote: '203.0.113.9',
  method: 'POST',
  path,
  names: ['ü \u2028 "'],
  status: 200,
  requestId: 'r',
});

function open(t: ExecutionContext) {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-audit-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'deeper', 'audit.log');
  const logged: Record<string, unknown>[] = [];
  const log = jsonLogger('info', { write: (line: string) => void logged.push(JSON.parse(line)) });
  const start = (key = KEY, at = path, retryMs = 5): AuditLog => {
    const audit = new AuditLog({ path: at, key, node: 'a', log, retryMs });
    t.teardown(() => audit.close());
    return audit;
  };
  const linesOf = (file = path): string[] =>
    existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  /** One run of a server, with so many calls. */
  const run = async (...paths: string[]): Promise<void> => {
    const audit = start();
    for (const each of paths) audit.add(entry(each));
    await audit.close();
  };
  const check = (files: readonly string[] = [path], keys = [KEY]) =>
    verify(
      files.map((name) => ({
        name: name.replace(/.*\//, ''),
        lines: readFileSync(name, 'utf8').split('\n').filter(Boolean),
      })),
      keys,
    );
  return { folder, path, logged, start, linesOf, run, check };
}

const eventsOf = (lines: readonly string[]): unknown[] =>
  lines.map((line) => (JSON.parse(line) as { event: string }).event);

test('each call is a line with its caller, address and outcome', async (t) => {
  const { path, linesOf, run, check } = open(t);
  await run('/v1/vhosts');
  const [first, call, last] = linesOf().map((line) => JSON.parse(line) as Record<string, unknown>);
  t.like(first, { seq: 1, node: 'a', event: 'begun', former: '' });
  t.like(call, { ...entry('/v1/vhosts'), seq: 2, node: 'a', event: 'call' });
  t.true(Date.parse(String(call?.time)) > 0);
  t.like(last, { seq: 3, event: 'ended' });
  t.is(statSync(path).mode & 0o777, 0o600);
  t.deepEqual(await check(), { broken: undefined, lines: 3, notes: [] });
});

test('many calls are written in their order, and a restart goes on with the chain', async (t) => {
  const { linesOf, run, check } = open(t);
  const paths = Array.from({ length: 1200 }, (_, n) => `/${n}`);
  await run(...paths);
  await run('/last');
  t.deepEqual(
    linesOf().flatMap((line) => (JSON.parse(line) as { path?: string }).path ?? []),
    [...paths, '/last'],
  );
  t.deepEqual(eventsOf(linesOf()).slice(-4), ['ended', 'resumed', 'call', 'ended']);
  t.like(await check(), { broken: undefined, lines: 1205 });
});

test('a line that was altered, removed, added or put elsewhere is found', async (t) => {
  const { path, linesOf, run, check } = open(t);
  await run('/1', '/2', '/3');
  const right = linesOf();
  const [begun = '', one = '', two = '', ...rest] = right;
  for (const [what, lines, at] of [
    ['altered', [begun, one, two.replace('/2', '/9'), ...rest], 3],
    ['altered outcome', [begun, one.replace('"status":200', '"status":201'), two, ...rest], 2],
    ['removed', [begun, two, ...rest], 2],
    ['removed at the start', [one, two, ...rest], 1],
    ['two exchanged', [begun, two, one, ...rest], 2],
    ['repeated', [begun, one, one, two, ...rest], 3],
    ['no line', [begun, one, 'x', two, ...rest], 3],
    ['nothing', [], 0],
  ] as const) {
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
    t.like((await check()).broken, { file: 'audit.log', line: at }, what);
  }
  writeFileSync(path, `${right.join('\n')}\n`);
  t.like((await check([path], ['another key'])).broken, { line: 1 });
  t.is((await check([path], ['another key', KEY])).broken, undefined);
  writeFileSync(path, `${right.slice(0, -2).join('\n')}\n`);
  const { broken, notes } = await check();
  t.is(broken, undefined);
  t.regex(notes[0] ?? '', /not that of a stop/);
});

test('a file that is moved away is followed by one that continues its chain', async (t) => {
  const { path, linesOf, start, check } = open(t);
  const audit = start();
  audit.add(entry('/1'));
  await until('it is written', () => linesOf().length === 2);
  renameSync(path, `${path}.1`);
  audit.add(entry('/2'));
  await audit.close();
  t.deepEqual(eventsOf(linesOf()), ['begun', 'call', 'ended']);
  t.deepEqual(await check([`${path}.1`, path]), { broken: undefined, lines: 5, notes: [] });
  t.regex((await check()).notes[0] ?? '', /continues a file that was not given/);
  const cut = `${path}.0`;
  writeFileSync(cut, `${linesOf(`${path}.1`)[0]}\n`);
  t.like((await check([cut, path])).broken, { file: 'audit.log', line: 1 }, 'its last line was removed');
  const swapped = await check([path, `${path}.1`]);
  t.true(swapped.notes.some((note) => note.includes('begins a chain of its own')));
});

test('a file that is copied and emptied is followed, too', async (t) => {
  const { path, linesOf, start, check } = open(t);
  const audit = start();
  audit.add(entry('/1'));
  await until('it is written', () => linesOf().length === 2);
  writeFileSync(`${path}.1`, readFileSync(path));
  truncateSync(path);
  audit.add(entry('/2'));
  await audit.close();
  t.deepEqual(await check([`${path}.1`, path]), { broken: undefined, lines: 5, notes: [] });
});

test('a line that a crash has cut off is reported as such, and the chain goes on', async (t) => {
  const { path, linesOf, run, check } = open(t);
  await run('/1');
  const [begun = '', call = ''] = linesOf();
  writeFileSync(path, `${begun}\n${call.slice(0, 30)}`);
  t.regex((await check()).notes[0] ?? '', /audit\.log:2 is cut off/);
  await run('/2');
  t.deepEqual((await check()).notes, ['audit.log:2 was cut off when the server was killed (30 bytes)']);
  t.is((await check()).broken, undefined);
  writeFileSync(path, `${begun}\n${call}`);
  await run('/3');
  t.deepEqual(await check(), { broken: undefined, lines: 5, notes: [] }, 'only the end of the line is missing');
  writeFileSync(path, call.slice(0, 30));
  await run('/4');
  t.is((await check()).broken, undefined, 'nothing but that');
});

test('a disk that is full is reported once and stops nothing; waiting lines are written when there is room', async (t) => {
  const { folder, logged, linesOf, start, check } = open(t);
  const path = join(folder, 'audit.log');
  symlinkSync('/dev/full', path);
  const audit = start(KEY, path);
  for (let n = 0; n < 10_005; n++) audit.add(entry(`/${n}`));
  await until('it is told', () => logged.length === 1);
  t.like(logged[0], { level: 'error', event: 'audit.failed', path });
  rmSync(path);
  await until('it is written', () => logged.length === 2);
  t.like(logged[1], { event: 'audit.resumed' });
  await audit.close();
  const calls = linesOf(path).filter((line) => line.includes('"event":"call"'));
  t.is(calls.length, 10_000);
  const { broken, notes } = await check([path]);
  t.is(broken, undefined);
  t.deepEqual(notes, ['audit.log:2 stands for 5 calls that the disk did not take']);
});

test('audit entries that a full disk did not take are reported when the server stops, and written where there is room again', async (t) => {
  const { folder, logged, linesOf, start, check } = open(t);
  const path = join(folder, 'audit.log');
  symlinkSync('/dev/full', path);
  const lost = start(KEY, path);
  for (let n = 0; n < 10_005; n++) lost.add(entry(`/${n}`));
  await until('it is told', () => logged.length === 1);
  await lost.close();
  t.like(logged[1], { level: 'error', event: 'audit.lost', path, lines: 10_005 });
  t.is(logged.length, 2);
  // it is closed while it waits to try again
  const late = start(KEY, path, 600_000);
  for (let n = 0; n < 1200; n++) late.add(entry(`/${n}`));
  await until('it has failed', () => logged.length === 3);
  rmSync(path);
  await late.close();
  t.deepEqual(
    eventsOf(linesOf(path)).filter((event) => event !== 'call'),
    ['begun', 'ended'],
  );
  t.like(await check([path]), { broken: undefined, lines: 1202, notes: [] });
});

test('a restart reports where the line that it goes on from is not sealed with its key', async (t) => {
  const { path, logged, linesOf, start, run, check } = open(t);
  await run('/1');
  await run('/2');
  t.deepEqual(logged, []);
  const right = linesOf();
  const forged = right.with(right.length - 2, (right.at(-2) ?? '').replace('/2', '/9')).slice(0, -1);
  for (const lines of [forged, forged.slice(-1), [...right.slice(0, -2), right.at(-1)]]) {
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
    await run('/3');
    t.like(logged.splice(0), [{ level: 'error', event: 'audit.unproved', path }]);
    t.not((await check()).broken, undefined);
  }
  writeFileSync(path, right.map((line) => `${line}\n`).join(''));
  await start('another key').close();
  t.like(logged.splice(0), [{ event: 'audit.unproved' }], 'of a changed key, too');
});

test('text that another process appends to the audit log is reported, and found by a check', async (t) => {
  const { path, logged, linesOf, start, check } = open(t);
  const audit = start();
  audit.add(entry('/1'));
  await until('it is written', () => linesOf().length === 2);
  appendFileSync(path, `${linesOf()[1]}\n`);
  audit.add(entry('/2'));
  await until('it is written', () => linesOf().length >= 4);
  appendFileSync(path, `${linesOf()[1]}\n`);
  audit.add(entry('/3'));
  await audit.close();
  t.is(logged.filter(({ msg }) => String(msg).includes('something else writes')).length, 1, 'it is told once');
  t.like((await check()).broken, { line: 3 });
});

test('a log with a changed key is valid for a verifier with both keys, and broken for one without', async (t) => {
  const { start, check, path } = open(t);
  for (const key of ['first', 'second']) {
    const audit = start(key);
    audit.add(entry('/1'));
    await audit.close();
  }
  t.is((await check([path], ['second', 'first'])).broken, undefined);
  t.like((await check([path], ['first'])).broken, { line: 4 });
});
