import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { TsMuxer } from '../../src/containers/mpegts/muxer.ts';
import type { Packet } from '../../src/core/packet.ts';
import { codedPackets, tracksOf } from '../support/media/coded-packets.ts';
import { Program } from '../support/media/ffmpeg.ts';
import { klvItem } from '../support/media/klv.ts';
import { dataTrack, interleaved } from '../support/media/packets.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const SECONDS = 8;
const STEP = 9000;
const APP = '/v1/vhosts/default/apps/app';
const ITEM = 'position';

/** MPEG-TS of a test pattern with ten items of KLV a second, multiplexed by ffmpeg. */
function film(folder: string): string {
  const media = codedPackets({ video: { codec: 'H264' }, audio: 'AAC', seconds: SECONDS });
  const track = dataTrack({ id: 512, codec: 'KLV' });
  const items = Array.from({ length: 10 * SECONDS }, (_, i): Packet => {
    return { track, dts: i * STEP, pts: i * STEP, duration: 0, key: true, data: klvItem(`${ITEM} ${i}`) };
  });
  const muxer = new TsMuxer([...tracksOf(media), track]);
  const [made, file] = [join(folder, 'made.ts'), join(folder, 'film.ts')];
  writeFileSync(made, Buffer.concat(interleaved(media, items).map((packet) => muxer.write(packet))));
  execFileSync('ffmpeg', ['-v', 'error', '-i', made, '-map', '0', '-c', 'copy', '-f', 'mpegts', file]);
  return file;
}

const names = (input: string | Buffer): string[] => {
  const isFile = typeof input === 'string';
  const args = ['-v', 'error', '-show_entries', 'stream=codec_name', '-of', 'csv=p=0', isFile ? input : '-'];
  const told = execFileSync('ffprobe', args, isFile ? {} : { input });
  return [...new Set(told.toString().match(/\w+/g))].sort();
};

test('KLV of an SRT publisher is in SRT, HLS and recordings as MPEG-TS', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'kiln-klv-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const source = film(folder);
  t.deepEqual(names(source), ['aac', 'h264', 'klv'], 'ffmpeg knows it');
  const hls = '<SegmentDuration>1</SegmentDuration>';
  const publishers = `<FILE><RootPath>${folder}</RootPath></FILE>`;
  const kiln = await Kiln.start({ srt: {}, hls, publishers });
  t.teardown(() => kiln.stop());
  const loop = ['-re', '-stream_loop', '-1', '-i', source, '-map', '0', '-c', 'copy', '-f', 'mpegts'];
  const publisher = new Program('ffmpeg', [...loop, `${kiln.srtUrl('drone')}&pkt_size=1316&connect_timeout=60000`]);
  t.teardown(() => publisher.stop());
  const { input } = await kiln.liveStream('drone');
  t.true(JSON.stringify(input.tracks).includes('KLV'), JSON.stringify(input.tracks));

  const record = { id: 'drone', stream: { name: 'drone' }, filePath: 'drone.ts' };
  t.is((await kiln.api(`${APP}:startRecord`, 'POST', record)).status, 200);
  const played = join(folder, 'played.ts');
  const limits = ['-t', '3', '-map', '0', '-c', 'copy', '-f', 'mpegts', '-y', played];
  const player = new Program('ffmpeg', ['-i', `${kiln.srtPlayUrl('drone')}&connect_timeout=60000`, ...limits]);
  t.teardown(() => player.stop());
  await player.exited();
  t.deepEqual(names(played), ['aac', 'h264', 'klv'], 'SRT');

  const segment = await until('a segment has KLV', async () => {
    const master = await fetch(kiln.httpUrl('/app/drone/ts:playlist.m3u8'));
    if (master.status !== 200) return undefined;
    const [child] = (await master.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    const chunklist = new URL(child ?? '', master.url);
    const [last] = (await (await fetch(chunklist)).text())
      .split('\n')
      .filter((line) => /\.ts/.test(line))
      .slice(-1);
    if (last === undefined) return undefined;
    const bytes = Buffer.from(await (await fetch(new URL(last, chunklist))).arrayBuffer());
    return bytes.includes(ITEM) && bytes;
  });
  t.deepEqual(names(segment), ['aac', 'h264', 'klv'], 'HLS');

  t.is((await kiln.api(`${APP}:stopRecord`, 'POST', { id: 'drone' })).status, 200);
  const recorded = await until('the recording is complete', () => {
    try {
      return names(join(folder, 'drone.ts'));
    } catch {
      return undefined;
    }
  });
  t.deepEqual(recorded, ['aac', 'h264', 'klv'], 'recording');
});
