import { spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { complaints, FFMPEG7 } from '../support/media/ffmpeg.ts';
import { encode } from '../support/rtmp/flv-source.ts';
import { openLlhls } from '../support/hls/llhls.ts';

const PICTURE = ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30'];
const SOUND = ['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000'];
const B_FRAMES = [
  '-c:v',
  'libx264',
  '-preset',
  'veryfast',
  '-bf',
  '2',
  '-g',
  '60',
  '-keyint_min',
  '60',
  '-sc_threshold',
  '0',
  '-pix_fmt',
  'yuv420p',
];
const X265 = [
  '-c:v',
  'libx265',
  '-preset',
  'ultrafast',
  '-x265-params',
  'log-level=none:keyint=60:min-keyint=60:bframes=2:scenecut=0',
  '-pix_fmt',
  'yuv420p',
];
const AV1 = ['-c:v', 'libsvtav1', '-preset', '12', '-g', '60', '-pix_fmt', 'yuv420p'];
const AAC = ['-c:a', 'aac', '-b:a', '96k'];

/** Runs a tool to its end. */
function run(command: string, args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (data) => (stdout += data));
    child.stderr.on('data', (data) => (stderr += data));
    child.on('error', reject);
    child.on('close', (status) => resolve({ status, stdout, stderr }));
  });
}

async function serve(t: ExecutionContext, media: readonly string[], seconds: number, ffmpeg?: string) {
  const { tracks, packets } = encode([...media, '-t', String(seconds)], ffmpeg);
  const server = await openLlhls(t, { llhls: { segmentDuration: 2, segmentCount: 10, chunkDuration: 0.5 } });
  const { output } = server.goLive(tracks);
  for (const packet of packets) output.write(packet);
  await server.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.app.server.address() as AddressInfo;
  return { ...server, packets, output, url: `http://127.0.0.1:${port}/app/stream/llhls.m3u8` };
}

for (const [name, media, ffmpeg] of [
  ['H.264 with B-frames and AAC', [...PICTURE, ...SOUND, ...B_FRAMES, ...AAC]],
  ['H.264 of 29.97 frames a second', ['-f', 'lavfi', '-i', 'testsrc2=size=320x180:rate=30000/1001', ...B_FRAMES]],
  ['AAC alone', [...SOUND, ...AAC]],
  ['H.265 with B-frames and AAC', [...PICTURE, ...SOUND, ...X265, ...AAC], FFMPEG7],
  ['AV1 and AAC', [...PICTURE, ...SOUND, ...AV1, ...AAC], FFMPEG7],
] as const) {
  test(`${name}: ffmpeg decodes every frame without a warning`, async (t) => {
    const { url, packets, output } = await serve(t, media, 12, ffmpeg);
    const decode = await run('ffmpeg', [
      '-v',
      'warning',
      '-xerror',
      '-max_reload',
      '2',
      '-live_start_index',
      '0',
      '-t',
      '9',
      '-i',
      url,
      '-f',
      'null',
      '-',
    ]);
    t.is(complaints(decode.stderr), '');
    t.is(decode.status, 0);
    for (const { id, type } of output.tracks) {
      const select = type === 'video' ? 'v:0' : 'a:0';
      const probe = await run('ffprobe', [
        '-v',
        'warning',
        '-live_start_index',
        '0',
        '-max_reload',
        '2',
        '-read_intervals',
        '%+9',
        '-select_streams',
        select,
        '-show_entries',
        'packet=pts,dts',
        '-of',
        'csv=p=0',
        url,
      ]);
      t.is(complaints(probe.stderr), '');
      const sent = packets.filter(({ track }) => track.id === id).map(({ pts }) => pts);
      const seen = probe.stdout
        .trim()
        .split('\n')
        .map((line) => Number(line.split(',')[0]));
      t.true(seen.length > 8 * (type === 'video' ? 29 : 46), `${seen.length} packets`);
      const offset = (seen[0] as number) - (sent[0] as number);
      t.deepEqual(
        seen,
        sent.slice(0, seen.length).map((pts) => pts + offset),
      );
    }
  });
}
