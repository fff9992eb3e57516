import type { Page } from 'playwright-core';
import { until } from '../time/until.ts';
import type { PlayerName } from './player-page.ts';

/** Reads the number of the frame that a page shows, in blocks that are its bits. @param bits of the width of the video */
export async function frameOf(page: Page, bits: number, video = 'video'): Promise<number | undefined> {
  const found = await page.evaluate<number | null>(`(() => {
    const video = document.querySelector('${video}');
    if (video === null || video.seeking || video.readyState < 2) return null;
    const canvas = new OffscreenCanvas(${bits}, 3);
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(video, 0, 0, ${bits}, 3);
    const { data } = context.getImageData(0, 1, ${bits}, 1);
    return Array.from({ length: ${bits} }, (_, bit) => (data[bit * 4] > 128 ? 2 ** bit : 0)).reduce((a, b) => a + b);
  })()`);
  return found ?? undefined;
}

/** Waits until a page shows a frame. @throws Error with the numbers of those that it showed instead */
export async function showsFrame(
  page: Page,
  bits: number,
  isWanted: (frame: number) => boolean,
  what: string,
): Promise<void> {
  const seen: (number | undefined)[] = [];
  await until(what, async () => {
    const frame = await frameOf(page, bits);
    if (seen.at(-1) !== frame) seen.push(frame);
    return frame !== undefined && isWanted(frame);
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${seen.join()}`);
  });
}

/** A moment of a stream, in its playlist. */
interface Moment {
  /** Milliseconds since the epoch. */
  readonly date: number;
  /** File name of its segment. */
  readonly segment: string;
  /** Seconds from the beginning of its segment, and of the playlist. */
  readonly into: number;
  readonly second: number;
}

/** Finds a moment in a media playlist by its dates. @param date milliseconds since the epoch */
export function momentOf(list: string, date: number): Moment {
  let [begin, duration, second] = [NaN, 0, 0];
  for (const line of list.split('\n')) {
    const [, tag, value = ''] = /^#(EXTINF|EXT-X-PROGRAM-DATE-TIME):(.*)/.exec(line) ?? [];
    if (tag === 'EXTINF') duration = Number.parseFloat(value);
    else if (tag !== undefined) begin = Date.parse(value);
    if (line === '' || line.startsWith('#')) continue;
    const into = (date - begin) / 1000;
    if (into < duration) return { date, segment: line, into, second: second + into };
    second += duration;
    begin += duration * 1000;
  }
  throw new Error(`nothing of ${new Date(date).toISOString()} is listed`);
}

const byDates =
  (hls: string) =>
  ({ date }: Moment): string =>
    `(() => {
      const { fragments } = ${hls}.latestLevelDetails;
      const fragment = fragments.findLast(({ programDateTime }) => programDateTime <= ${date});
      return fragment.start + (${date} - fragment.programDateTime) / 1000;
    })()`;

/** Media time of a moment: hls.js knows dates, Shaka Player segments, and video.js the beginning of the playlist. */
const TIMES: Readonly<Record<PlayerName, (moment: Moment) => string>> = {
  hls: byDates('window.hls'),
  ovenplayer: byDates('window.ovenPlayer.getMseInstance()'),
  videojs: ({ second }) => `window.vhsPlayer.seekable().start(0) + ${second}`,
  shaka: ({ segment, into }) => `(() => {
    const [{ video }] = window.shakaPlayer.getManifest().variants;
    const segment = [...video.segmentIndex].find((one) => one?.getUris()[0].includes(${JSON.stringify(segment)}));
    return segment.getStartTime() + ${into};
  })()`,
};

/** Seeks by the interface of each player. */
const SEEKS: Readonly<Record<PlayerName, (time: string) => string>> = {
  hls: (time) => `document.querySelector('video').currentTime = ${time}`,
  ovenplayer: (time) => `window.ovenPlayer.seek(${time})`,
  videojs: (time) => `window.vhsPlayer.currentTime(${time})`,
  shaka: (time) => `document.querySelector('video').currentTime = ${time}`,
};

/** Brings a player to a moment. */
export async function seekTo(page: Page, player: PlayerName, moment: Moment): Promise<void> {
  await page.evaluate(`void (${SEEKS[player](TIMES[player](moment))})`);
}
