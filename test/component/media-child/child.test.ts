import { existsSync } from 'node:fs';
import { chmod, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { pino } from 'pino';
import { FaultLog } from '../../../src/log/log.ts';
import { FfmpegChild } from '../../../src/media-child/child.ts';
import { standStillBeforeTimers } from '../../support/time/stand-still.ts';
import { until } from '../../support/time/until.ts';

/** A child that is a shell script, and what it did. */
function start(
  script: string,
  outputs = 1,
  path = '/bin/sh',
  args = ['-c', script],
  onChunk?: (chunk: Buffer) => void,
) {
  const lines: { msg: string; count: number }[] = [];
  const faults = new FaultLog(pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) }));
  const got: string[] = Array.from({ length: outputs }, () => '');
  const ended: number[] = [];
  const reasons: string[] = [];
  let drained = 0;
  const child = new FfmpegChild({
    path,
    args,
    outputs,
    faults,
    handler: {
      output: (index, chunk) => {
        got[index] += chunk.toString('latin1');
        onChunk?.(chunk);
      },
      outputEnd: (index) => void ended.push(index),
      drain: () => void drained++,
      gone: (reason) => void reasons.push(reason),
    },
  });
  const gone = () => until('the child is gone', () => reasons[0]);
  return { child, got, ended, reasons, gone, lines, faults, drained: () => drained };
}

const exists = async (pid: number) =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    () => true,
    () => false,
  );

test('bytes written to a media child come to its input, its output is received, then it is gone', async (t) => {
  const { child, got, ended, gone, reasons } = start('got=$(cat); printf %s "$got" >&3; printf %s "$got" >&4', 2);
  child.write(Buffer.from('head '), Buffer.from('data'));
  child.write(Buffer.from(' more'));
  child.end();
  child.end();
  t.is(await gone(), 'ffmpeg has ended with code 0');
  t.deepEqual(got, ['head data more', 'head data more']);
  t.deepEqual(ended.sort(), [0, 1]);
  child.end();
  child.kill();
  child.write(Buffer.from('late'));
  t.is(reasons.length, 1);
});

test('a media child that cannot be started is gone once, with the reason, and leaves nothing open', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-child-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const file = join(folder, 'ffmpeg');
  await writeFile(file, 'no program');
  const openFiles = async () => (await readdir('/proc/self/fd')).length;
  const before = await openFiles();
  const starts: [RegExp, string, string[]][] = [
    [/does not start: .*ENOENT/, join(folder, 'none'), []],
    [/does not start: .*EACCES/, file, []],
    [/does not start: .*E2BIG/, '/bin/sh', ['-c', 'x'.repeat(1_000_000)]],
  ];
  for (const [reason, path, args] of starts) {
    const { child, gone, reasons } = start('', 3, path, args);
    t.is(child.pid, undefined);
    t.true(child.write(Buffer.from('input')));
    t.regex(await gone(), reason);
    child.kill();
    child.end();
    t.is(reasons.length, 1);
  }
  await until('no file is open any more', async () => (await openFiles()) <= before);
  await chmod(file, 0o755);
  t.regex(await start('', 1, file, []).gone(), /ENOEXEC|code \d+/);
});

test("the reason of a child's end is its signal, or the last errors", async (t) => {
  t.is(await start('kill -9 $$').gone(), 'ffmpeg was ended by SIGKILL');
  const errors = [1, 2, 3, 4, 5, 6].map((n) => `echo '[libx264 @ 0x55d${n}] number ${n}' >&2`).join(';');
  const { gone, child } = start(`echo 'x265 [warning]: hm' >&2; ${errors}; exit 7`);
  t.is(
    await gone(),
    'ffmpeg has ended with code 7: [libx264] number 3; [libx264] number 4; [libx264] number 5; [libx264] number 6',
  );
  t.deepEqual([...child.diagnostics.blamed], []);
});

test('outputs are found in the errors of ffmpeg 5 and 7', async (t) => {
  const says = [
    'Error initializing output stream 1:0 -- Error while opening encoder for output stream #1:0 - maybe',
    '[vost#4:0/libx264 @ 0x557] Error while opening encoder - maybe incorrect parameters such as bit_rate',
    '[af#6:0 @ 0x557] Error sending frames to consumers: Invalid argument',
    '[vost#9:0/libx264 @ 0x557] [warning] no error',
    'Error while processing the decoded data for stream #0:0',
  ];
  const { child, gone } = start(says.map((line) => `echo '${line}' >&2`).join(';'));
  await gone();
  t.deepEqual([...child.diagnostics.blamed], [1, 4, 6]);
});

test('floods and endless lines on standard error are counted, not kept', async (t) => {
  const { child, gone, lines, faults } = start(`
    head -c 20000000 /dev/zero | tr '\\0' x >&2; echo >&2
    i=0; while [ $i -lt 3000 ]; do echo "[h264 @ 0x$i] macroblock $i"; i=$((i+1)); done >&2`);
  const reason = await gone();
  faults.close();
  t.true(reason.length < 3000);
  t.true(child.diagnostics.lines >= 3000);
  t.true(lines.length < 50);
  t.true(lines.some(({ msg, count }) => msg === 'ffmpeg: [h264] macroblock N' && count > 10));
  t.true(lines.every(({ msg }) => msg.length < 500));
});

test('a media child that does not read is full, and signals when it reads again', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-child-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const flag = join(folder, 'read');
  const { child, drained, gone, got } = start(`while [ ! -e ${flag} ]; do sleep 0.05; done; wc -c >&3`);
  const frame = Buffer.alloc(50_000);
  let written = 0;
  let open = true;
  while (open && written < 100) {
    open = child.write(frame);
    written++;
  }
  t.false(open);
  t.true(written < 20, `${written} frames of 50 kB`);
  t.is(drained(), 0);
  await writeFile(flag, '');
  await until('it takes input again', () => drained() > 0);
  t.true(child.write(frame));
  child.end();
  await gone();
  t.is(Number(got[0]), (written + 1) * frame.length);
});

test('outputs of a media child that are not read wait, and come whole before it is gone', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-child-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const flag = join(folder, 'written');
  const zeros = (bytes: number) => `head -c ${bytes} /dev/zero`;
  const { child, got, gone, ended } = start(
    `${zeros(1000)} >&3; touch ${flag}; ${zeros(1_000_000)} >&3; ${zeros(100_000)} >&4`,
    2,
  );
  child.read(false);
  await until('it has written', () => existsSync(flag));
  t.deepEqual(got, ['', '']);
  child.read(true);
  await until('the first output comes', () => got[0] !== '');
  child.read(false);
  child.read(true);
  t.is(await gone(), 'ffmpeg has ended with code 0');
  t.deepEqual(
    got.map(({ length }) => length),
    [1_001_000, 100_000],
  );
  t.deepEqual(ended.sort(), [0, 1]);
});

test('a media child that ends while its outputs are not read is gone with all that it has put out', async (t) => {
  const { child, got, gone } = start('head -c 100000 /dev/zero >&3; exit 3');
  child.read(false);
  t.is(await gone(), 'ffmpeg has ended with code 3');
  t.is(got[0]?.length, 100_000);
});

test('chunks of an output stay as they were', async (t) => {
  const chunks: Buffer[] = [];
  const { child, gone } = start(
    'for i in 1 2 3 4 5; do printf $i >&3; read go; done',
    1,
    undefined,
    undefined,
    (chunk) => {
      chunks.push(chunk);
      child.write(Buffer.from('go\n'));
    },
  );
  t.is(await gone(), 'ffmpeg has ended with code 0');
  t.is(Buffer.concat(chunks).toString(), '12345');
});

test('a media child that does not end with its input is killed, and so is one that closes its input', async (t) => {
  const deaf = start('trap "" TERM; while :; do sleep 0.1; done');
  deaf.child.end();
  const shut = start('exec 0<&-; echo up >&3; while :; do sleep 0.1; done');
  await until('it is up', () => shut.got[0] !== '');
  shut.child.write(Buffer.from('nobody reads this'));
  t.is(await deaf.gone(), 'ffmpeg was ended by SIGKILL');
  t.is(await shut.gone(), 'ffmpeg was ended by SIGKILL');
  for (const { child } of [deaf, shut]) t.false(await exists(child.pid as number));
});

test('a media child that goes on after its input has ended has its time, even if this process is suspended', async (t) => {
  const { child, got, gone } = start('cat >/dev/null; sleep 2; printf one >&3; sleep 1.8; printf two >&3');
  child.end();
  await standStillBeforeTimers(3500);
  t.is(await gone(), 'ffmpeg has ended with code 0');
  t.deepEqual(got, ['onetwo']);
});

test('a media child inherits no files and no secrets', async (t) => {
  process.env.KILN_ACCESS_TOKEN = 'kept from children';
  const file = await open(new URL(import.meta.url));
  t.teardown(() => file.close());
  const { child, got, gone } = start('env >&3; ls -l /proc/$$/fd >&4', 2);
  child.end();
  await gone();
  t.notRegex(got[0] as string, /KILN|kept from children/);
  t.regex(got[0] as string, /^PATH=/m);
  t.regex(got[1] as string, /4 -> socket/);
  t.notRegex(got[1] as string, /child\.test/);
});

test('a media child ends by itself when this process is killed', async (t) => {
  const program = `
    import { FfmpegChild } from '${new URL('../../../src/media-child/child.ts', import.meta.url)}';
    const handler = { output() {}, outputEnd() {}, drain() {}, gone() {} };
    const faults = { count() {} };
    const path = 'ffmpeg';
    const make = () => new FfmpegChild({ path, outputs: 1, handler, faults, args: [
      '-v', 'error', '-f', 's16le', '-ar', '8000', '-i', 'pipe:0', '-f', 'nut', 'pipe:3'] });
    const children = [make(), make()];
    for (const child of children) child.write(Buffer.alloc(16_000));
    console.log(children.map(({ pid }) => pid).join(' '));
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const pids = line.toString().trim().split(' ').map(Number);
  t.is(pids.length, 2);
  for (const pid of pids) t.true(await exists(pid));
  parent.kill('SIGKILL');
  for (const pid of pids) await until(`${pid} has ended`, async () => !(await exists(pid)));
});
