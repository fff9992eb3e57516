import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { freePorts } from '../support/network/ports.ts';
import { until } from '../support/time/until.ts';

const APP = '/v1/vhosts/default/apps/app';
const FRAMES = 100;
/** One key frame: who misses the first frame has nothing. */
const PICTURE = { size: '160x90', rate: 25, gop: 10 * FRAMES, bitrate: '200k' };
const run = promisify(execFile);

interface Probe {
  readonly streams: readonly { readonly codec_name: string; readonly nb_read_packets: string }[];
}

test('recordings that were asked for before their streams have all of them, whatever they come by', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'kiln-record-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const [port] = freePorts(1) as [number];
  const map = join(folder, 'records.xml');
  const entry = '<Enable>true</Enable><StreamName>*</StreamName><FilePath>/map/${Stream}.mp4</FilePath>';
  await writeFile(map, `<RecordInfo><Record>${entry}</Record></RecordInfo>`);
  const kiln = await Kiln.start({
    srt: {},
    bindProviders: `<MPEGTS><Port>${port}</Port></MPEGTS>`,
    providers: `<MPEGTS><StreamMap><Stream><Name>udp</Name><Port>${port}/udp</Port></Stream></StreamMap></MPEGTS>`,
    publishers: `<FILE><RootPath>${folder}</RootPath><StreamMap><Enable>true</Enable><Path>${map}</Path></StreamMap></FILE>`,
  });
  t.teardown(() => kiln.stop());
  const targets = {
    rtmp: ['-f', 'flv', kiln.rtmpUrl('rtmp')],
    srt: ['-f', 'mpegts', kiln.srtUrl('srt')],
    udp: ['-f', 'mpegts', `udp://127.0.0.1:${port}?pkt_size=1316`],
  };
  for (const name of Object.keys(targets)) {
    for (const extension of ['mp4', 'ts']) {
      const body = { id: `${name}.${extension}`, stream: { name }, filePath: `/api/\${Stream}.${extension}` };
      t.is((await kiln.api(`${APP}:startRecord`, 'POST', body)).status, 200);
    }
  }
  for (const target of Object.values(targets)) {
    const program = new Program('ffmpeg', [
      ...patternArguments(PICTURE),
      '-t',
      String(FRAMES / PICTURE.rate),
      ...target,
    ]);
    t.teardown(() => program.stop());
  }
  const wanted = Object.keys(targets).flatMap((name) => [`api/${name}.mp4`, `api/${name}.ts`, `map/${name}.mp4`]);
  await until('all files are complete', async () => {
    const found = await readdir(folder, { recursive: true });
    return wanted.every((name) => found.includes(name));
  });
  for (const name of wanted) {
    const args = ['-v', 'error', '-count_packets', '-show_entries', 'stream=codec_name,nb_read_packets', '-of', 'json'];
    const { streams } = JSON.parse((await run('ffprobe', [...args, join(folder, name)])).stdout) as Probe;
    t.deepEqual(streams.map(({ codec_name: codec }) => codec).sort(), ['aac', 'h264'], name);
    const frames = Number(streams.find(({ codec_name: codec }) => codec === 'h264')?.nb_read_packets);
    // a sender over UDP is known to be gone by its silence: its last picture may have no end
    t.true(frames >= FRAMES - 1, `${name}: ${frames} frames`);
  }
});
