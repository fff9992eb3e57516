import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { decoded } from '../support/media/decoded.ts';
import { Kiln } from '../support/server/kiln.ts';
import { writeNumbered } from '../support/media/numbered-files.ts';
import { PartViewer, type ShownPicture } from '../support/hls/part-viewer.ts';
import { until } from '../support/time/until.ts';

const RATE = 25;
const FRAME_MS = 1000 / RATE;
const LLHLS = '<ChunkDuration>0.5</ChunkDuration><SegmentDuration>2</SegmentDuration><SegmentCount>10</SegmentCount>';
/** Of tracks of channels. */
const [VIDEO, AUDIO] = [0, 100];
const LARGE = ['-profile:v', 'high', '-preset', 'veryfast', '-bf', '2'];
/** Lengths that are no whole groups of pictures, and two of another size, profile and order of frames. */
const ITEMS = [
  { frames: 75 },
  { frames: 110 },
  { frames: 62, size: '640x360', video: LARGE },
  { frames: 93 },
  { frames: 150, size: '640x360', video: LARGE },
  { frames: 51 },
  { frames: 88 },
];
/** Frames before each of the items. */
const STARTS = ITEMS.map((_, index) => ITEMS.slice(0, index).reduce((sum, { frames }) => sum + frames, 0));
const ROUND = ITEMS.reduce((sum, { frames }) => sum + frames, 0);

const placeOf = ({ item, frame }: Pick<ShownPicture, 'item' | 'frame'>): number => (STARTS[item] ?? NaN) + frame;

/**
 * Plays a scheduled channel of short files in real time: everything that came as LL-HLS decodes without an error, no picture is
 * missing, and each item begins within one frame of its plan.
 * @returns whether that is so
 */
export async function channel(folder: string, minutes: number, print: (text: string) => void): Promise<boolean> {
  for (const [item, shape] of ITEMS.entries())
    await writeNumbered(join(folder, `${item}.mp4`), { item, rate: RATE, gop: RATE, ...shape });
  const kiln = await Kiln.start({
    llhls: LLHLS,
    providers: `<Schedule><MediaRootDir>${folder}</MediaRootDir></Schedule>`,
  });
  try {
    const begin = Math.floor(Date.now() / 1000) * 1000;
    const items = ITEMS.map((_, item) => ({ url: `file://${item}.mp4` }));
    const { status } = await kiln.api('/v1/vhosts/default/apps/app/scheduledChannels', 'POST', {
      stream: { name: 'tv', bypassTranscoder: true },
      programs: [{ name: 'all day', scheduled: new Date(begin).toISOString(), repeat: true, items }],
    });
    if (status !== 201) throw new Error(`the channel was not created: ${status}`);
    const url = kiln.httpUrl('/app/tv/llhls.m3u8');
    await until('it plays', async () => (await fetch(url)).status === 200);
    const [video, audio] = await Promise.all([PartViewer.start(url, VIDEO), PartViewer.start(url, AUDIO)]);
    for (const end = performance.now() + minutes * 60_000; performance.now() < end && kiln.running;) await delay(500);
    for (const viewer of [video, audio]) viewer.close();
    if (!kiln.running) throw new Error(`the server has ended: ${kiln.log}`);
    const faults = [...video.failures, ...audio.failures];
    for (const file of audio.files())
      await decoded(file, ['-f', 's16le']).catch((error: Error) => faults.push(error.message));
    const pictures = await video.pictures();
    faults.push(...breaksOf(pictures));
    const off = offPlan(pictures, begin);
    const [least, most] = [Math.min(...off), Math.max(...off)];
    print(
      `${pictures.length} pictures, ${audio.files().length} runs of audio, ${off.length} changes of items; ` +
        `off their plan by ${least.toFixed(1)} to ${most.toFixed(1)} ms`,
    );
    for (const fault of faults) print(`FAULT: ${fault}`);
    const isOnTime = off.length > 0 && Math.max(-least, most) <= FRAME_MS;
    return faults.length === 0 && isOnTime && pictures.length >= (minutes * 60_000) / FRAME_MS - 10 * RATE;
  } finally {
    await kiln.stop();
  }
}

/** Where another picture comes than the next of the schedule. */
function breaksOf(pictures: readonly ShownPicture[]): string[] {
  return pictures.flatMap((picture, i) => {
    const before = pictures[i - 1];
    if (before === undefined || (placeOf(before) + 1) % ROUND === placeOf(picture)) return [];
    return [`after frame ${before.frame} of item ${before.item} came frame ${picture.frame} of item ${picture.item}`];
  });
}

/** How much later each item began than planned, in milliseconds, the first one being on time. */
function offPlan(pictures: readonly ShownPicture[], begin: number): number[] {
  const firsts = pictures.filter(({ frame }) => frame === 0);
  const round = ROUND * FRAME_MS;
  const plannedOf = (picture: ShownPicture): number => {
    const place = begin + placeOf(picture) * FRAME_MS;
    // the last time before it came
    return place + Math.floor((picture.at + FRAME_MS - place) / round) * round;
  };
  const [first] = firsts;
  if (first === undefined) return [];
  return firsts.map((one) => (one.pts - first.pts) * 1000 - (plannedOf(one) - plannedOf(first)));
}
