import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { finishLeftovers } from '../../../src/tasks/record/leftovers.ts';
import { codedPackets, tracksOf } from '../../support/coded-packets.ts';
import { openRecords, recordSpec, shifted } from '../../support/recordings.ts';
import { until } from '../../support/until.ts';

const PACKETS = codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: 10 });
const TRACKS = tracksOf(PACKETS);
const FILE = '${Stream}/${Sequence}.mp4';

/** MD5 of every frame's data, as ffmpeg reads it back. */
function hashes(path: string, kind: 'v' | 'a'): string[] {
  const args = ['-v', 'error', '-i', path, '-map', `0:${kind}:0`, '-f', 'framemd5', '-c', 'copy', '-'];
  return execFileSync('ffmpeg', args)
    .toString()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(',').at(-1)?.trim() ?? '');
}

function format(path: string): { readonly start: number; readonly duration: number } {
  const text = execFileSync('ffprobe', ['-v', 'error', '-show_format', '-of', 'json', path]).toString();
  const { format: probed } = JSON.parse(text) as { format: { start_time: string; duration: string } };
  return { start: Number(probed.start_time), duration: Number(probed.duration) };
}

for (const extension of ['mp4', 'ts']) {
  test.serial(`files of an interval in ${extension} join without a frame lost or twice`, async (t) => {
    const { records, application, stop, publish, files, root } = await openRecords(t);
    const spec = recordSpec({ interval: 2000, filePath: `\${Sequence}.${extension}`, infoPath: 'info.xml' });
    await records.create(application, 'r', spec);
    const output = await publish(TRACKS, 'r');
    for (const packet of shifted(PACKETS, 500)) output.write(packet);
    const stopped = await stop('r');
    t.is(stopped.report?.state, 'recording');
    const names = [0, 1, 2, 3, 4].map((n) => `${n}.${extension}`);
    t.deepEqual(files(), [...names, 'info.xml']);
    const whole = join(root, 'whole.mp4');
    await records.create(application, 'whole', recordSpec({ filePath: 'whole.mp4', infoPath: 'whole.xml' }));
    await until('both read', () => output.readers > 0);
    for (const packet of shifted(PACKETS, 600)) output.write(packet);
    await stop('whole');
    for (const kind of ['v', 'a'] as const) {
      const joined = names.flatMap((name) => hashes(join(root, name), kind));
      if (extension === 'mp4') t.deepEqual(joined, hashes(whole, kind));
      else t.is(joined.length, hashes(whole, kind).length);
    }
    const first = format(join(root, names[1] as string));
    t.true(first.start < 1.6 && Math.abs(first.duration - 2) < 0.2, JSON.stringify(first));
    const info = readFileSync(join(root, 'info.xml'), 'utf8');
    t.is(info.match(/<file>/g)?.length, 5);
    t.regex(info, /<lastSequence>true<\/lastSequence>[^]*<\/files>\n$/);
  });
}

test.serial('with continuity the times of a file go on where those before it ended', async (t) => {
  const { records, application, stop, publish, root } = await openRecords(t);
  const spec = recordSpec({ interval: 2000, filePath: '${Sequence}.mp4', segmentationRule: 'continuity' });
  await records.create(application, 'r', spec);
  const output = await publish(TRACKS, 'r');
  for (const packet of shifted(PACKETS, 500)) output.write(packet);
  await stop('r');
  const { start } = format(join(root, '2.mp4'));
  t.true(Math.abs(start - 4) < 0.2, `starts at ${start}`);
});

test.serial('a recording goes on with the next sequence when its stream is back, and keeps its totals', async (t) => {
  const { records, application, stop, publish, files } = await openRecords(t);
  t.is((await records.create(application, 'r', recordSpec({ filePath: FILE, infoPath: 'i.xml' }))).report, undefined);
  const first = await publish(TRACKS, 'r');
  for (const packet of PACKETS) first.write(packet);
  const before = (await records.list(application, 'r'))[0]?.report;
  t.like(before, { state: 'recording', sequence: 0, warnings: [] });
  first.input.close('gone');
  await until('nobody runs it', async () => (await records.list(application, 'r'))[0]?.report === undefined);
  const second = await publish(TRACKS, 'r');
  for (const packet of PACKETS) second.write(packet);
  const after = (await records.list(application, 'r'))[0]?.report;
  t.is(after?.sequence, 1);
  t.is(after?.totalRecordTime, 2 * (after?.recordTime ?? 0));
  await stop('r');
  t.deepEqual(files(), ['i.xml', 'stream/0.mp4', 'stream/1.mp4']);
  t.deepEqual(await records.list(application), []);
});

test.serial('a file that exists is never replaced', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  mkdirSync(root);
  writeFileSync(join(root, 'a.ts'), 'mine');
  await records.create(application, 'r', recordSpec({ filePath: 'a.ts', infoPath: 'i.xml' }));
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  await stop('r');
  t.deepEqual(files(), ['a.ts', 'a_1.ts', 'i.xml']);
  t.is(readFileSync(join(root, 'a.ts'), 'utf8'), 'mine');
});

test.serial('a disk that fails is an error of the task, which stays until it is stopped', async (t) => {
  const { records, application, stop, publish, root } = await openRecords(t);
  writeFileSync(root, 'not a folder');
  await records.create(application, 'r', recordSpec());
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  const failed = await until('it has failed', async () => {
    const [task] = await records.list(application, 'r');
    return task?.report?.state === 'error' ? task.report : undefined;
  });
  t.regex(failed.reason ?? '', /EEXIST|ENOTDIR/);
  output.input.close('gone');
  await until('nobody reads', async () => output.readers === 0);
  t.is((await records.list(application, 'r'))[0]?.report?.state, 'error');
  await stop('r');
});

test.serial('a track that a container cannot carry is left out, with a warning', async (t) => {
  const { records, application, stop, publish } = await openRecords(t);
  const odd = TRACKS.map((track) => (track.type === 'audio' ? { ...track, codec: 'PCMA' as const } : track));
  await records.create(application, 'r', recordSpec({ filePath: 'a.mp4' }));
  const output = await publish(odd, 'r');
  for (const packet of PACKETS) output.write(packet);
  const [task] = await records.list(application, 'r');
  t.deepEqual(task?.report?.warnings, ['track 1 (audio) is left out: PCMA cannot be carried in MP4']);
  await stop('r');
});

for (const path of ['../x.ts', 'a/../../x.ts', '/etc/x.ts', `${'x'.repeat(300)}.ts`, 'a\0.ts', 'out/x.ts', 'dir/']) {
  test.serial(`${JSON.stringify(path.slice(0, 20))} is no path below the root`, async (t) => {
    const { records, application, root, folder } = await openRecords(t);
    mkdirSync(root);
    symlinkSync(folder, join(root, 'out'));
    await t.throwsAsync(() => records.create(application, 'r', recordSpec({ filePath: path })), {
      code: 'taskInvalid',
    });
    await t.throwsAsync(() => records.create(application, 'r', recordSpec({ infoPath: path })), {
      code: 'taskInvalid',
    });
    t.deepEqual(await records.list(application), []);
  });
}

test.serial('names with dots, Unicode and the root itself are fine', async (t) => {
  const { records, application, stop, publish, files, root } = await openRecords(t);
  await records.create(application, 'ünï..', recordSpec({ filePath: `${root}/x/${'${Id}'}.ts`, infoPath: '..i.xml' }));
  const output = await publish(TRACKS, 'r');
  for (const packet of PACKETS) output.write(packet);
  await stop('ünï..');
  t.deepEqual(files(), ['..i.xml', 'x/ünï...ts']);
});

for (const extension of ['mp4', 'ts']) {
  test.serial(`what a killed process has left of a ${extension} is finished at the next start`, async (t) => {
    const { journal, root, folder, log, files } = await openRecords(t);
    mkdirSync(root);
    const source = join(folder, `whole.${extension}`);
    execFileSync('ffmpeg', [
      ...['-v', 'error', '-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=25', '-t', '4', '-g', '25', '-c:v', 'libx264'],
      ...['-pix_fmt', 'yuv420p', '-movflags', 'frag_keyframe+empty_moov', source],
    ]);
    const temporary = join(root, `tmp_${'0'.repeat(32)}`);
    const bytes = readFileSync(source);
    writeFileSync(temporary, bytes.subarray(0, Math.floor(bytes.length * 0.7)));
    const names = { transactionId: 'x', id: 'r', vhost: 'default', app: 'app', stream: 's', source: 's' };
    const times = { sequence: 3, createdTime: 1, startTime: Date.now() };
    await journal.add({ ...names, ...times, temporary, root, file: `a.${extension}`, info: 'i.xml' });
    await finishLeftovers(journal, log);
    t.deepEqual(files(), [`a.${extension}`, 'i.xml']);
    t.deepEqual(await journal.list(), []);
    execFileSync('ffmpeg', ['-v', 'error', '-xerror', '-i', join(root, `a.${extension}`), '-f', 'null', '-']);
    t.false(existsSync(temporary));
  });
}
