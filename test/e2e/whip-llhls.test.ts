import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { complaints } from '../support/media/ffmpeg.ts';
import { Kiln } from '../support/server/kiln.ts';
import { chunklists } from '../support/hls/llhls-recording.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { shared } from '../support/runner/shared.ts';
import { PublisherPeer } from '../support/webrtc/publisher-peer.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';
import { h264, opus } from '../support/webrtc/webrtc-media.ts';

const run = promisify(execFile);
const teardown = new Teardown();
test.after.always(() => teardown.run());

const server = shared(async () => {
  const kiln = await Kiln.start({
    whip: true,
    llhls: '<SegmentDuration>1</SegmentDuration><SegmentCount>100</SegmentCount>',
  });
  teardown.teardown(() => kiln.stop());
  return kiln;
});

/** Publishes by WHIP until LL-HLS is there. */
async function publish(name: string, options?: Parameters<typeof h264>[0]) {
  const kiln = await server();
  const peer = new PublisherPeer({ media: [await h264(options), await opus()] });
  teardown.teardown(() => peer.close());
  const base = kiln.httpUrl(`/app/${name}`);
  const response = await peer.publish(`${base}?direction=whip`);
  const { input, outputs } = await kiln.liveStream(name);
  const playlist = `${base}/llhls.m3u8`;
  await until('LL-HLS is there', async () => (await fetch(playlist)).status === 200);
  return { kiln, base, response, input, outputs, playlist };
}

const published = shared(() => publish('stream'));

test.serial('a stream published by WHIP has AAC besides its own tracks, and describes its connection', async (t) => {
  const { input, outputs } = await published();
  t.is(input.sourceType, 'WebRTC');
  t.like(input, { connection: { transport: 'UDP', protocol: 'UDP', remoteAddress: '127.0.0.1' } });
  t.deepEqual(
    outputs[0]?.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'OPUS', 'AAC'],
  );
});

test.serial('ffmpeg decodes LL-HLS of H.264 and Opus published by WHIP without a complaint', async (t) => {
  const { playlist } = await published();
  await until('some seconds of picture and sound', async () => {
    const lists = [...(await chunklists(playlist)).values()];
    const texts = await Promise.all(lists.map(async (list) => (await fetch(list)).text()));
    return texts.length === 2 && texts.every((text) => text.split('#EXTINF').length > 6);
  });
  const read = ['-v', 'warning', '-xerror', '-max_reload', '2', '-live_start_index', '0', '-t', '3', '-i', playlist];
  const write = ['-map', '0:v', '-map', '0:a', '-fps_mode', 'vfr', '-f', 'null', '-'];
  t.is(complaints((await run('ffmpeg', [...read, ...write], { timeout: PATIENCE_MS })).stderr), '');
});

test.serial('a page, a playlist and a WHIP endpoint share a path', async (t) => {
  const { base, playlist } = await published();
  const types = [base, `${base}?direction=whip`, `${playlist}?direction=whip`].map(async (url) =>
    (await fetch(url)).headers.get('content-type')?.replace(/;.*/, ''),
  );
  t.deepEqual(await Promise.all(types), ['text/html', 'application/sdp', 'application/vnd.apple.mpegurl']);
});

test.serial('a stream published by WHIP has statistics, and ends with DELETE of its resource', async (t) => {
  const { kiln, base, response } = await published();
  const statistics = await kiln.api<{ connections?: unknown }>(
    '/v1/stats/current/vhosts/default/apps/app/streams/stream',
  );
  t.is(statistics.status, 200, kiln.log);
  t.is((await fetch(new URL(response.headers.get('location') ?? '', base), { method: 'DELETE' })).status, 200);
  await until('the stream has ended', async () => (await kiln.stream('stream')).status === 404);
});

test.serial('frames that are shown in another order than they are sent come to LL-HLS players evenly', async (t) => {
  const { playlist } = await publish('reordered', { bframes: 2, fps: 25, gop: 25 });
  const from = ['-select_streams', 'v:0', '-live_start_index', '0', '-read_intervals', '%+2'];
  const show = ['-show_entries', 'packet=pts_time,dts_time', '-of', 'json'];
  const probe = run('ffprobe', ['-v', 'error', ...from, ...show, playlist], { timeout: PATIENCE_MS });
  const { packets } = JSON.parse((await probe).stdout) as { packets: { pts_time: string; dts_time: string }[] };
  const decoded = packets.map(({ dts_time }) => Number(dts_time));
  const shown = packets.map(({ pts_time }) => Number(pts_time));
  t.true(shown.length > 25 && shown.some((time, index) => index > 0 && time < (shown[index - 1] as number)));
  decoded.forEach((time, index) =>
    t.true(time <= (shown[index] as number) && (index === 0 || time > (decoded[index - 1] as number))),
  );
  // of the last group some may be missing; sender reports move the picture to the sound little by little
  const steps = shown
    .slice(0, 25)
    .sort((a, b) => a - b)
    .map((time, index, all) => time - (all[index - 1] ?? time - 0.04));
  t.true(
    steps.every((step) => Math.abs(step - 0.04) < 0.02),
    steps.join(' '),
  );
});
