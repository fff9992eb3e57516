import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { patternArguments, Program } from '../support/ffmpeg.ts';
import { Kiln } from '../support/kiln.ts';
import { freePorts } from '../support/ports.ts';
import { until } from '../support/until.ts';

const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const APP = '/v1/vhosts/default/apps/app';
const run = promisify(execFile);

interface Push {
  readonly id: string;
  readonly state: string;
  readonly sentBytes: number;
  readonly totalsentBytes: number;
  readonly sequence: number;
}

async function start(t: ExecutionContext): Promise<Kiln> {
  const kiln = await Kiln.start({ publishers: '<Push/>' });
  t.teardown(() => kiln.stop());
  return kiln;
}

function publish(t: ExecutionContext, kiln: Kiln): void {
  const program = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', 'flv', kiln.rtmpUrl('live')]);
  t.teardown(() => program.stop());
}

async function pushes(kiln: Kiln): Promise<readonly Push[]> {
  return (await kiln.api<readonly Push[]>(`${APP}:pushes`)).body.response;
}

test.serial('a stream is pushed over RTMP to a Kiln, and the push is stopped', async (t) => {
  const kiln = await start(t);
  publish(t, kiln);
  await kiln.liveStream('live');
  const url = `rtmp://127.0.0.1:${kiln.ports.rtmp}/app`;
  const body = { id: 'copy', stream: { name: 'live' }, protocol: 'rtmp', url, streamKey: 'copied-stream' };
  const { status } = await kiln.api(`${APP}:startPush`, 'POST', body);
  t.is(status, 200);
  const { input } = await kiln.liveStream('copied-stream');
  t.deepEqual(input.tracks.map(({ type }) => type).sort(), ['Audio', 'Video']);
  const push = await until('bytes are counted', async () => {
    const [one] = await pushes(kiln);
    return one !== undefined && one.sentBytes > 0 && one;
  });
  t.like(push, { id: 'copy', state: 'pushing', sequence: 1 });
  const stopped = await kiln.api<Push>(`${APP}:stopPush`, 'POST', { id: 'copy' });
  t.is(stopped.body.response.state, 'stopping');
  t.deepEqual(await pushes(kiln), []);
  await until('the copy has ended', async () => (await kiln.stream('copied-stream')).status === 404);
});

/** How ffmpeg receives each protocol, and where it is pushed to; `PORT` stands for a free port. */
const RECEIVERS = [
  {
    protocol: 'rtmp',
    url: 'rtmp://127.0.0.1:PORT/live',
    from: ['-listen', '1', '-i', 'rtmp://127.0.0.1:PORT/live/key'],
  },
  { protocol: 'mpegts', url: 'udp://127.0.0.1:PORT', from: ['-i', 'udp://127.0.0.1:PORT?fifo_size=100000'] },
  {
    protocol: 'srt',
    url: 'srt://127.0.0.1:PORT?latency=300&passphrase=ten-letters&pbkeylen=32',
    from: ['-i', 'srt://127.0.0.1:PORT?mode=listener&passphrase=ten-letters'],
  },
  { protocol: 'mpegts', url: 'tcp://127.0.0.1:PORT', from: ['-i', 'tcp://127.0.0.1:PORT?listen=1'] },
] as const;

for (const { protocol, url, from } of RECEIVERS)
  test.serial(`ffmpeg receives a push to ${url} that was made before its stream, and decodes it`, async (t) => {
    const kiln = await start(t);
    const folder = await mkdtemp(join(tmpdir(), 'kiln-push-'));
    t.teardown(() => rm(folder, { recursive: true, force: true }));
    const [port] = (await freePorts(1)) as [number];
    const at = (text: string): string => text.replace('PORT', String(port));
    const body = { id: 'out', stream: { name: 'live' }, protocol, url: at(url), streamKey: 'key' };
    const made = await kiln.api<Push>(`${APP}:startPush`, 'POST', body);
    t.is(made.body.response.state, 'ready');
    const file = join(folder, 'out.mkv');
    const listener = run('ffmpeg', ['-v', 'fatal', ...from.map(at), '-t', '3', '-c', 'copy', file], {
      timeout: 100_000,
    });
    publish(t, kiln);
    await listener;
    const { stdout, stderr } = await run('ffprobe', [
      ...['-v', 'error', '-show_entries', 'stream=codec_name:packet=codec_type,flags'],
      ...['-of', 'json', '-show_packets', file],
    ]);
    t.is(stderr, '');
    const probe = JSON.parse(stdout) as {
      readonly streams: readonly { readonly codec_name: string }[];
      readonly packets: readonly { readonly codec_type: string; readonly flags: string }[];
    };
    t.deepEqual(
      probe.streams.map(({ codec_name: codec }) => codec).sort(),
      ['h264', protocol === 'rtmp' ? 'aac' : 'opus'].sort(),
    );
    t.regex(probe.packets.find(({ codec_type: type }) => type === 'video')?.flags ?? '', /^K/);
    const decoded = await run('ffmpeg', ['-v', 'error', '-i', file, '-f', 'null', '-']);
    t.is(decoded.stderr, '');
    t.false(kiln.log.includes('ten-letters'));
  });
