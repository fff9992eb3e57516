import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { beeps, flashes } from '../support/media/decoded.ts';
import { complaints, Program } from '../support/media/ffmpeg.ts';
import { encodeFlv, type FlvTag } from '../support/rtmp/flv-file.ts';
import { hlsScripts } from '../support/hls/hls-scripts.ts';
import { Kiln } from '../support/server/kiln.ts';
import { BYPASS, ladderXml, LONG_LLHLS } from '../support/media/ladder-config.ts';
import { long } from '../support/runner/long.ts';
import { inRealTime } from '../support/time/real-time.ts';
import {
  createMultiplex,
  MULTIPLEX_CHANNELS,
  multiplexState,
  playlistOf,
  sourceOf,
  untilPlays,
} from '../support/channels/multiplex-api.ts';
import { moreSegments, playFaults } from '../support/hls/renditions.ts';
import { RtmpClient } from '../support/rtmp/rtmp-client.ts';
import { Teardown } from '../support/programs/teardown.ts';
import { PATIENCE_MS, until } from '../support/time/until.ts';

const CROSS_DOMAINS = '<CrossDomains><Url>*</Url></CrossDomains>';
const SOUND = '<Audio><Name>sound</Name><Bypass>true</Bypass></Audio>';
/** What a viewer notices. */
const IN_STEP_SECONDS = 0.04;
/** Longer than the tests take: the end of one round of sound is no whole frame. */
const CLIP_SECONDS = 180;
const FLASH = 'if(lt(mod(t,1),0.1),sin(2*PI*1000*t)/2,0)';

const WITHIN = { timeout: PATIENCE_MS };

const undo = new Teardown();
let kiln: Kiln;
let clip: readonly FlvTag[];

test.before(async () => {
  clip = flashAndBeep();
  kiln = await Kiln.start({
    llhls: LONG_LLHLS + CROSS_DOMAINS,
    providers: '<Multiplex/>',
    application: ladderXml([BYPASS, SOUND]),
  });
  undo.teardown(() => kiln.stop());
});
test.after.always(() => undo.run());

/** A flash and a beep at every full second. */
function flashAndBeep(): FlvTag[] {
  const picture = "color=black:size=160x90:rate=30,drawbox=color=white:t=fill:enable='lt(mod(t,1),0.1)'";
  const sources = ['-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', `aevalsrc='${FLASH}|${FLASH}':s=48000`];
  const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p', '-g', '30'];
  return encodeFlv([...sources, ...x264, '-c:a', 'aac', '-t', `${CLIP_SECONDS}`]);
}

/** One encoder that publishes a ladder as two streams, of which the first one has sound. */
function publishLadder(high: string, low: string): Program {
  const sources = [
    '-re',
    '-f',
    'lavfi',
    '-i',
    'testsrc2=size=320x180:rate=30',
    '-re',
    '-f',
    'lavfi',
    '-i',
    'sine=r=48000',
  ];
  const x264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'];
  const keys = ['-g', '30', '-keyint_min', '30', '-sc_threshold', '0'];
  const picture = (size: string): string[] => ['-map', '0:v', '-s', size, ...x264, ...keys];
  const sound = ['-map', '1:a', '-c:a', 'aac', '-ac', '2'];
  const first = [...picture('320x180'), '-b:v', '400k', ...sound, '-f', 'flv', high];
  const second = [...picture('160x90'), '-b:v', '100k', '-f', 'flv', low];
  return new Program('ffmpeg', ['-nostdin', '-v', 'error', ...sources, ...first, ...second]);
}

/** Publishes tracks of the clip. @param base of its timestamps, milliseconds @returns when it began, and its end */
async function publishClip(stream: string, types: readonly FlvTag['type'][], base = 0) {
  const client = await RtmpClient.publish(stream, { port: kiln.ports.rtmp });
  const tags = clip.filter(({ type }) => types.includes(type));
  const began = performance.now();
  const stop = inRealTime(tags, CLIP_SECONDS * 1000, ({ type, body }, time) => {
    if (type === 'video') client.video(body, base + time);
    else client.audio(body, base + time);
  });
  const close = (): void => {
    stop();
    client.close();
  };
  return { began, close };
}

/** By how much the beeps of a stream come after its flashes, in seconds from -0.5 to 0.5. */
async function distance(stream: string, video: string, audio: string): Promise<number> {
  const [picture, sound] = await moreSegments(kiln, [video, audio], 8, { stream });
  if (picture === undefined || sound === undefined) throw new Error('nothing was recorded');
  const [flashed, beeped] = await Promise.all([flashes(picture), beeps(sound)]);
  const begin = Math.max(picture.frames[0]?.pts ?? Infinity, sound.frames[0]?.pts ?? Infinity) + 1;
  const distances = flashed
    .filter((time) => time > begin)
    .map((time) => beeped.map((other) => other - time).sort((a, b) => Math.abs(a) - Math.abs(b))[0] ?? NaN)
    .sort((a, b) => a - b);
  if (distances.length < 3) throw new Error(`too few flashes: ${flashed.join()}`);
  return distances[Math.floor(distances.length / 2)] as number;
}

test.serial('picture and sound of different streams are as far apart as they arrive', async (t) => {
  await createMultiplex(kiln, 'split', [sourceOf('cam', ['source', 'picture']), sourceOf('mic', ['sound', 'voice'])], {
    playlists: [playlistOf('llhls', { name: 'both', video: 'picture', audio: 'voice' })],
  });
  t.deepEqual(await multiplexState(kiln, 'split'), {
    state: 'Pulling',
    pullingMessage: 'Multiplex Channel : #default#app/split: Wait for stream stream://default/app/cam',
  });
  const both = await publishClip('both', ['video', 'audio']);
  const cam = await publishClip('cam', ['video'], 40_000);
  const mic = await publishClip('mic', ['audio'], 977_000);
  t.teardown(() => [both, cam, mic].forEach(({ close }) => close()));
  await untilPlays(kiln, 'split');
  const [alone, split] = await Promise.all([
    distance('both', 'source', 'sound'),
    distance('split', 'picture', 'voice'),
  ]);
  const sent = (mic.began - cam.began) / 1000;
  const apart = split - alone - sent;
  // a flash and a beep at every second tell no seconds
  const error = apart - Math.round(apart);
  t.log(`sent ${Math.round(sent * 1000)} ms apart, error ${Math.round(error * 1000)} ms`);
  t.true(Math.abs(error) <= IN_STEP_SECONDS, `${split} and ${alone}, sent ${sent}`);
  const { tracks } = (await kiln.liveStream('split')).outputs[0] ?? { tracks: [] };
  // numbered as their sources begin
  t.deepEqual(tracks.map(({ id }) => id).sort(), [0, 1]);
  t.deepEqual(tracks.map(({ name, type }) => `${name} ${type}`).sort(), ['picture Video', 'voice Audio']);
});

test.serial('a source that ends ends the stream, and players go on when it is back', async (t) => {
  const mic = await publishClip('back-mic', ['audio']);
  let cam = await publishClip('back-cam', ['video']);
  t.teardown(() => [mic, cam].forEach(({ close }) => close()));
  await createMultiplex(
    kiln,
    'back',
    [sourceOf('back-cam', ['source', 'picture']), sourceOf('back-mic', ['sound', 'voice'])],
    {
      playlists: [playlistOf('llhls', { name: 'both', video: 'picture', audio: 'voice' })],
    },
  );
  await untilPlays(kiln, 'back');
  const [before] = await moreSegments(kiln, ['picture', 'voice'], 2, { stream: 'back' });
  cam.close();
  const waiting = await until('it waits for its source', async () => {
    const now = await multiplexState(kiln, 'back');
    return now?.state === 'Pulling' && now.pullingMessage?.includes('Wait for stream') === true && now.pullingMessage;
  });
  t.is(waiting, 'Multiplex Channel : #default#app/back: Wait for stream stream://default/app/back-cam');
  t.is((await kiln.stream('back')).status, 404);
  cam = await publishClip('back-cam', ['video']);
  await untilPlays(kiln, 'back');
  const [after] = await moreSegments(kiln, ['picture', 'voice'], 2, { stream: 'back' });
  const last = before?.segments.at(-1)?.msn ?? Infinity;
  const breaks = after?.segments.filter(({ discontinuity }) => discontinuity).map(({ msn }) => msn);
  t.is(breaks?.length, 1, 'one discontinuity');
  t.true((breaks?.[0] ?? 0) > last, 'behind what was there');
});

long('renditions of two streams are one ladder, which ffmpeg and hls.js play', async (t) => {
  const encoder = publishLadder(kiln.rtmpUrl('high'), kiln.rtmpUrl('low'));
  t.teardown(() => encoder.stop());
  const declared = {
    ...sourceOf('low'),
    trackMap: [{ sourceTrackName: 'source', newTrackName: '90p', bitrateConf: 100_000, framerateConf: 30 }],
  };
  await createMultiplex(kiln, 'ladder', [sourceOf('high', ['source', '180p'], ['sound', 'voice']), declared], {
    playlists: [
      playlistOf('abr', { name: 'high', video: '180p', audio: 'voice' }, { name: 'low', video: '90p', audio: 'voice' }),
    ],
  });
  await untilPlays(kiln, 'ladder');
  const { tracks } = (await kiln.liveStream('ladder')).outputs[0] ?? { tracks: [] };
  t.like(tracks.find(({ name }) => name === '90p')?.video, { bitrateConf: 100_000, framerateConf: 30, width: 160 });
  const recorded = await moreSegments(kiln, ['180p', '90p', 'voice'], 4, { stream: 'ladder', playlist: 'abr' });
  for (const one of recorded) t.deepEqual(playFaults(one), []);
  const url = kiln.httpUrl('/app/ladder/abr.m3u8');
  const decoder = new Program('ffmpeg', [
    '-nostdin',
    '-v',
    'warning',
    '-xerror',
    '-i',
    url,
    '-map',
    '0',
    '-t',
    '4',
    '-f',
    'null',
    '-',
  ]);
  t.teardown(() => decoder.stop());
  t.is(await decoder.exited(), 0, decoder.stderr);
  t.is(complaints(decoder.stderr), '');
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.goto(kiln.httpUrl('/livez'));
  await page.addScriptTag({ content: hlsScripts() });
  await page.evaluate(`playHls('${url}')`);
  await page.waitForFunction('window.hls?.levels.length === 2', undefined, WITHIN);
  const widths = new Set<number>();
  for (const level of [0, 1]) {
    await page.evaluate(`hls.nextLevel = ${level}`);
    const width = `hls.levels[${level}].width`;
    await page.waitForFunction(`hls.currentLevel === ${level} && shows(${width})`, undefined, WITHIN);
    widths.add(await page.evaluate<number>(width));
  }
  t.deepEqual(widths, new Set([160, 320]));
  t.deepEqual(await page.evaluate('faults'), []);
});

long('a channel that does not pass the output profiles by is put out by them', async (t) => {
  const cam = await publishClip('made', ['video', 'audio']);
  t.teardown(() => cam.close());
  await createMultiplex(kiln, 'through', [sourceOf('made', ['source', 'picture'])], {}, { bypassTranscoder: false });
  await untilPlays(kiln, 'through');
  const { input, outputs } = await kiln.liveStream('through');
  t.is(input.sourceType, 'Multiplex');
  t.deepEqual(
    outputs.map(({ name, tracks }) => ({ name, tracks: tracks.map((track) => track.name) })),
    [{ name: 'through', tracks: ['source'] }],
  );
  t.is((await kiln.api(`${MULTIPLEX_CHANNELS}/through`, 'DELETE')).status, 200);
  t.is((await kiln.stream('through')).status, 404);
});
