import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import type { Page } from 'playwright-core';
import { openFmp4Clip } from '../../../src/playback/clip/fmp4.ts';
import { Mp4Clip } from '../../../src/playback/clip/mp4.ts';
import { launchBrowser } from '../../support/hls/browser.ts';
import { numberedRecording, RATE } from '../../support/recording/numbered-recording.ts';
import { until } from '../../support/time/until.ts';

const folder = await mkdtemp(join(tmpdir(), 'kiln-clip-'));
const MS = 1_700_000_000_000;
const file = await numberedRecording(join(folder, 'h264'), { video: 'H264', audio: 'AAC', frames: 500, gop: 50 }, MS);
/** In the middle of a group of pictures. */
const FIRST = 73;
const COUNT = 300;
const SPAN = { start: MS + (FIRST * 1000) / RATE, duration: (COUNT * 1000) / RATE };
const clip = await Mp4Clip.open([file], SPAN);
const asked: (string | undefined)[] = [];

const server = createServer((request, answer) => void respond(request, answer).catch(() => answer.destroy()));
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const browser = await launchBrowser();

test.after.always(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

async function respond({ url, headers }: IncomingMessage, answer: ServerResponse): Promise<void> {
  if (url === '/mp4') {
    asked.push(headers.range);
    const [, from = '0', to = ''] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? [];
    const end = to === '' ? clip.size : Number(to) + 1;
    answer.writeHead(headers.range === undefined ? 200 : 206, {
      'content-type': 'video/mp4',
      'accept-ranges': 'bytes',
      etag: clip.etag,
      'content-length': end - Number(from),
      ...(headers.range !== undefined && { 'content-range': `bytes ${from}-${end - 1}/${clip.size}` }),
    });
    for await (const piece of clip.read(Number(from), end)) answer.write(piece);
  } else if (url === '/fmp4') {
    answer.writeHead(200, { 'content-type': 'video/mp4' });
    for await (const piece of (await openFmp4Clip([file], SPAN)).pieces) answer.write(piece);
  } else answer.writeHead(200, { 'content-type': 'text/html' });
  answer.end();
}

const READ = `(() => {
  const video = document.querySelector('video');
  const canvas = new OffscreenCanvas(16, 3);
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.drawImage(video, 0, 0, 16, 3);
  const { data } = context.getImageData(0, 1, 10, 1);
  let frame = 0;
  for (let bit = 0; bit < 10; bit++) if (data[bit * 4] > 128) frame += 2 ** bit;
  return frame;
})()`;

async function open(path: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(origin);
  await page.setContent(`<video muted src="${origin}${path}"></video>`);
  await until(
    `${path} is loaded`,
    async () => ((await page.evaluate(`document.querySelector('video').readyState`)) as number) > 2,
  );
  return page;
}

/** Goes to a moment, if one is given, until its frame is shown. */
async function shows(page: Page, frame: number, second?: number): Promise<void> {
  if (second !== undefined) await page.evaluate(`void (document.querySelector('video').currentTime = ${second})`);
  await until(`frame ${frame}`, async () => (await page.evaluate(READ)) === frame);
}

test.serial('Chromium shows the first frame of a clip, and seeks in it by ranges', async (t) => {
  const page = await open('/mp4');
  t.teardown(() => page.close());
  await shows(page, FIRST);
  const duration = (await page.evaluate(`document.querySelector('video').duration`)) as number;
  t.true(Math.abs(duration - COUNT / RATE) < 0.001, `${duration} s`);
  for (const frame of [250, 10, 299, 0, 124]) {
    await shows(page, FIRST + frame, (frame + 0.5) / RATE);
  }
  t.true(asked.some((one) => one !== undefined));
});

test.serial('Chromium plays a fragmented clip from its first frame on', async (t) => {
  const page = await open('/fmp4');
  t.teardown(() => page.close());
  await shows(page, FIRST);
  await page.evaluate(`document.querySelector('video').play()`);
  await t.notThrowsAsync(
    until('it plays', async () => ((await page.evaluate(`document.querySelector('video').currentTime`)) as number) > 2),
  );
});
