import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { long } from '../support/runner/long.ts';
import { freePorts } from '../support/network/ports.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { until } from '../support/time/until.ts';

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

const teardown = new Teardown();
let kiln: Kiln;
/** Of recordings, and of the files that ask for them. */
let folder: string;
test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kiln-push-'));
  teardown.teardown(() => rm(folder, { recursive: true, force: true }));
  const map = (name: string) => `<StreamMap><Enable>true</Enable><Path>${join(folder, name)}</Path></StreamMap>`;
  const file = `<FILE><RootPath>${folder}</RootPath>${map('records.xml')}</FILE>`;
  kiln = await Kiln.start({ publishers: `${file}<Push>${map('pushes.xml')}</Push>` });
  teardown.teardown(() => kiln.stop());
});
test.after.always(() => teardown.run());

function publish(t: ExecutionContext, name: string): void {
  const program = new Program('ffmpeg', [...patternArguments(PICTURE), '-f', 'flv', kiln.rtmpUrl(name)]);
  t.teardown(() => program.stop());
}

async function pushes(): Promise<readonly Push[]> {
  return (await kiln.api<readonly Push[]>(`${APP}:pushes`)).body.response;
}

test.serial(
  'a stream is pushed over RTMP to a Kiln, and the push is stopped; files ask for another, and a recording',
  async (t) => {
    publish(t, 'live');
    await kiln.liveStream('live');
    const url = `rtmp://127.0.0.1:${kiln.ports.rtmp}/app`;
    const body = { id: 'copy', stream: { name: 'live' }, protocol: 'rtmp', url, streamKey: 'copied-stream' };
    const { status } = await kiln.api(`${APP}:startPush`, 'POST', body);
    t.is(status, 200);
    const { input } = await kiln.liveStream('copied-stream');
    t.deepEqual(input.tracks.map(({ type }) => type).sort(), ['Audio', 'Video']);
    const push = await until('bytes are counted', async () => {
      const [one] = await pushes();
      return one !== undefined && one.sentBytes > 0 && one;
    });
    t.like(push, { id: 'copy', state: 'pushing', sequence: 1 });
    const stopped = await kiln.api<Push>(`${APP}:stopPush`, 'POST', { id: 'copy' });
    t.is(stopped.body.response.state, 'stopping');
    t.deepEqual(await pushes(), []);
    await until('the copy has ended', async () => (await kiln.stream('copied-stream')).status === 404);

    const entry = (name: string, more: string) =>
      `<${name}><Enable>true</Enable><StreamName>live</StreamName>${more}</${name}>`;
    const target = `<Protocol>rtmp</Protocol><Url>${url}/\${SourceStream}_2</Url>`;
    await writeFile(join(folder, 'pushes.xml'), `<PushInfo>${entry('Push', target)}</PushInfo>`);
    await kiln.liveStream('live_2');
    t.like((await pushes())[0], { isConfig: true, url, streamKey: 'live_2' });
    const path = '<FilePath>/${Stream}.ts</FilePath>';
    await writeFile(join(folder, 'records.xml'), `<RecordInfo>${entry('Record', path)}</RecordInfo>`);
    const records = async () => (await kiln.api<readonly Push[]>(`${APP}:records`)).body.response;
    await until('it is recorded', async () => (await records())[0]?.state === 'recording');
    t.like((await records())[0], { isConfig: true, filePath: '${Stream}.ts' });
    await writeFile(join(folder, 'records.xml'), '<RecordInfo/>');
    await until('the file is there', () => stat(join(folder, 'live.ts')).catch(() => undefined));
    await until('nothing is recorded', async () => (await records()).length === 0);
  },
);

interface ReceiverShape {
  readonly protocol: string;
  /** Where it is pushed to; `PORT` stands for a free port. */
  readonly url: string;
  readonly codecs: readonly string[];
  /** Its command, which writes `FILE`, or standard output. */
  readonly command: readonly string[];
}

const COPY = ['-t', '3', '-c', 'copy', 'FILE'];
const FFMPEG = ['ffmpeg', '-v', 'fatal'];

const RECEIVERS: readonly ReceiverShape[] = [
  {
    protocol: 'rtmp',
    url: 'rtmp://127.0.0.1:PORT/live',
    codecs: ['aac', 'h264'],
    command: [...FFMPEG, '-listen', '1', '-i', 'rtmp://127.0.0.1:PORT/live/key', ...COPY],
  },
  {
    protocol: 'mpegts',
    url: 'udp://127.0.0.1:PORT?pkt_size=1128',
    codecs: ['aac', 'h264'],
    command: [...FFMPEG, '-i', 'udp://127.0.0.1:PORT?fifo_size=100000', ...COPY],
  },
  {
    protocol: 'srt',
    url: 'srt://127.0.0.1:PORT?latency=300&passphrase=ten-letters&pbkeylen=32',
    codecs: ['aac', 'h264'],
    command: [...FFMPEG, '-i', 'srt://127.0.0.1:PORT?mode=listener&passphrase=ten-letters', ...COPY],
  },
  {
    protocol: 'mpegts',
    url: 'tcp://127.0.0.1:PORT',
    codecs: ['aac', 'h264'],
    command: [...FFMPEG, '-i', 'tcp://127.0.0.1:PORT?listen=1', ...COPY],
  },
  {
    protocol: 'srt',
    url: 'srt://127.0.0.1:PORT?streamid=%23!::r=out',
    codecs: ['aac', 'h264'],
    command: ['srt-live-transmit', '-q', '-a:no', 'srt://127.0.0.1:PORT?mode=listener', 'file://con'],
  },
  {
    protocol: 'mpegts',
    url: 'tcp://127.0.0.1:PORT',
    codecs: ['h264'],
    command: (
      'gst-launch-1.0 -q tcpserversrc host=127.0.0.1 port=PORT ! tsdemux ! h264parse ' +
      '! matroskamux streamable=true ! fdsink fd=1'
    ).split(' '),
  },
  {
    protocol: 'rtsp',
    url: 'rtsp://127.0.0.1:PORT/live/key',
    codecs: ['aac', 'h264'],
    command: [...FFMPEG, '-rtsp_flags', 'listen', '-i', 'rtsp://127.0.0.1:PORT/live/key', ...COPY],
  },
];
/** Of standard output: a few seconds. */
const ENOUGH_BYTES = 100_000;

/** Runs a receiver until it has ended. @param stop ends its push: called when it has written enough */
async function receive([program = '', ...args]: readonly string[], file: string, stop: () => unknown): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  teardown.teardown(() => void child.kill('SIGKILL'));
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= ENOUGH_BYTES && bytes - chunk.length < ENOUGH_BYTES) stop();
  });
  await once(child, 'close');
  if (bytes > 0) await writeFile(file, Buffer.concat(chunks));
}

long('ffmpeg, GStreamer and libsrt receive pushes that were made before their stream', async (t) => {
  const ports = freePorts(RECEIVERS.length);
  const received = RECEIVERS.map(async ({ protocol, url, command }, index) => {
    const file = join(folder, `${index}.${command[0] === 'srt-live-transmit' ? 'ts' : 'mkv'}`);
    const at = (text: string): string => text.replace('PORT', String(ports[index])).replace('FILE', file);
    const body = { id: `out${index}`, stream: { name: 'early' }, protocol, url: at(url), streamKey: 'key' };
    const made = await kiln.api<Push>(`${APP}:startPush`, 'POST', body);
    t.is(made.body.response.state, 'ready');
    await receive(command.map(at), file, () => kiln.api(`${APP}:stopPush`, 'POST', { id: body.id }));
    return file;
  });
  publish(t, 'early');
  for (const [index, { url, codecs }] of RECEIVERS.entries()) {
    const file = (await received[index]) as string;
    const { stdout } = await run('ffprobe', [
      ...['-v', 'fatal', '-show_entries', 'stream=codec_name:packet=codec_type,flags'],
      ...['-of', 'json', '-show_packets', file],
    ]);
    const probe = JSON.parse(stdout) as {
      readonly streams: readonly { readonly codec_name: string }[];
      readonly packets: readonly { readonly codec_type: string; readonly flags: string }[];
    };
    const found = probe.streams.map(({ codec_name: codec }) => codec).sort();
    t.deepEqual(found, codecs, url);
    t.regex(probe.packets.find(({ codec_type: type }) => type === 'video')?.flags ?? '', /^K/, url);
    const decoded = await run('ffmpeg', ['-v', 'error', '-i', file, '-f', 'null', '-']);
    t.is(decoded.stderr, '', url);
  }
  t.false(kiln.log.includes('ten-letters'));
});
