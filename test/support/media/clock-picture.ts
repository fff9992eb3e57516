import type { Page } from 'playwright-core';
import { Program } from './ffmpeg.ts';

const WIDTH = 320;
const RATE = 30;
/** Bits of the clock, each a block of the picture, the lowest first: milliseconds, about 17 minutes of them. */
const BITS = 20;
const BLOCK = 16;
const RANGE = 2 ** BITS;

const CODEC = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p', '-bf', '0'];
const GOP = ['-g', `${RATE}`, '-keyint_min', `${RATE}`, '-sc_threshold', '0', '-b:v', '1000k', '-c:a', 'aac'];

/** ffmpeg that publishes a picture which shows when it was made, with a tone, as the demo does. @param url RTMP */
export function publishClock(url: string): Program {
  const blocks = Array.from({ length: BITS }, (_, bit) => {
    const isSet = `gte(mod(time(0)*1000/${2 ** bit}\\,2)\\,1)`;
    return `drawbox=x=${bit * BLOCK}:y=0:w=${BLOCK}:h=${BLOCK}:c=white:t=fill:enable='${isSet}'`;
  });
  const picture = ['-re', '-f', 'lavfi', '-i', `color=black:size=${WIDTH}x180:rate=${RATE}`];
  const sound = ['-re', '-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000,aformat=channel_layouts=stereo'];
  return new Program('ffmpeg', [
    '-nostdin',
    '-v',
    'error',
    ...picture,
    ...sound,
    '-vf',
    blocks.join(),
    ...CODEC,
    ...GOP,
    '-f',
    'flv',
    url,
  ]);
}

/** Takes down the age of each frame that a page's videos show; read by `agesOf`. */
export async function watchAges(page: Page): Promise<void> {
  await page.addInitScript(`
    window.ages = new Map();
    const canvas = new OffscreenCanvas(${WIDTH}, ${BLOCK});
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const watch = (video) => {
      video.requestVideoFrameCallback((now, { expectedDisplayTime }) => {
        watch(video);
        context.drawImage(video, 0, 0);
        const { data } = context.getImageData(0, ${BLOCK / 2}, ${WIDTH}, 1);
        let clock = 0;
        for (let bit = 0; bit < ${BITS}; bit++) if (data[(bit * ${BLOCK} + ${BLOCK / 2}) * 4] > 128) clock += 2 ** bit;
        const shown = performance.timeOrigin + expectedDisplayTime;
        const ages = window.ages.get(video.ariaLabel) ?? [];
        window.ages.set(video.ariaLabel, ages);
        ages.push((((shown - clock) % ${RANGE}) + ${RANGE}) % ${RANGE});
        if (ages.length > ${RATE}) ages.shift();
      });
    };
    new MutationObserver(() => {
      for (const video of document.querySelectorAll('video:not([data-watched])')) {
        video.dataset.watched = '';
        watch(video);
      }
    }).observe(document, { childList: true, subtree: true });`);
}

/** Milliseconds: the median age of the frames that a video showed in its last second; undefined before it has. */
export async function ageOf(page: Page, label: string): Promise<number | undefined> {
  const ages = await page.evaluate<number[]>(`window.ages.get(${JSON.stringify(label)}) ?? []`);
  return ages.length < RATE ? undefined : ages.toSorted((one, other) => one - other)[RATE / 2];
}
