import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { admissionsXml } from '../support/access/admissions.ts';
import { launchBrowser } from '../support/hls/browser.ts';
import { patternArguments, Program } from '../support/media/ffmpeg.ts';
import { freePorts } from '../support/network/ports.ts';
import { Kiln } from '../support/server/kiln.ts';
import { until } from '../support/time/until.ts';

const ROOT = join(import.meta.dirname, '../..');
const PICTURE = { size: '160x90', rate: 15, gop: 15, bitrate: '200k' };
const TOKEN = 'a token';

const [port = 0] = freePorts(1);
const webhook = spawn(process.execPath, [join(ROOT, 'examples/webhook-server.mjs')], {
  // the secret is that of `admissionsXml`
  env: { PATH: process.env.PATH, SECRET: 'of the control server', TOKEN, PORT: String(port) },
  stdio: ['ignore', 'pipe', 'inherit'],
});
let heard = '';
webhook.stdout.on('data', (chunk: Buffer) => (heard += chunk.toString()));
await until('the example listens', () => heard.includes(`listening on port ${port}\n`));
const kiln = await Kiln.start({
  vhost: admissionsXml({ url: `http://127.0.0.1:${port}/` }),
  llhls:
    '<SegmentDuration>1</SegmentDuration><ChunkDuration>0.5</ChunkDuration><CrossDomains><Url>*</Url></CrossDomains>',
});
test.after.always(async () => {
  await kiln.stop();
  webhook.kill();
});

const publish = (name: string, token: string) =>
  new Program('ffmpeg', [...patternArguments(PICTURE), '-f', 'flv', kiln.rtmpUrl(`${name}?token=${token}`)]);

test('the webhook server admits encoders with the token, and hls.js plays them in the page', async (t) => {
  const publisher = publish('live', encodeURIComponent(TOKEN));
  t.teardown(() => publisher.stop());
  await kiln.liveStream('live');

  const { devDependencies, dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  const html = readFileSync(join(ROOT, 'examples/player.html'));
  const version = { ...devDependencies, ...dependencies }['hls.js'];
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html));
  await new Promise<void>((listening) => void site.listen(0, '127.0.0.1', listening));
  t.teardown(() => site.close());
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage();
  await page.route(`https://cdn.jsdelivr.net/npm/hls.js@${version}/dist/hls.min.js`, (route) =>
    route.fulfill({ path: join(ROOT, 'node_modules/hls.js/dist/hls.min.js'), contentType: 'text/javascript' }),
  );
  const source = encodeURIComponent(kiln.httpUrl('/app/live/llhls.m3u8'));
  await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/player.html?src=${source}`);
  await page.waitForFunction('video.currentTime > 0 && video.videoWidth === 160 && !video.paused');
  await page.getByText(/^[\d.]+ s behind live$/).waitFor();
  t.regex(heard, /^opening incoming RTMP 127\.0\.0\.1 \/app\/live$/m);
  t.regex(heard, /^opening outgoing \w+ 127\.0\.0\.1 \/app\/live\/llhls\.m3u8$/m);
});

test('the webhook server rejects an encoder without the token, and a call without a valid signature', async (t) => {
  const publisher = publish('other', 'wrong');
  t.teardown(() => publisher.stop());
  await until('the webhook is asked', () => /^opening incoming RTMP 127\.0\.0\.1 \/app\/other$/m.test(heard));
  await until('the encoder is rejected', () => kiln.log.includes('wrong token'));
  t.is((await kiln.stream('other')).status, 404);
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    body: '{}',
    headers: { 'x-ome-signature': 'AA' },
  });
  t.is(answer.status, 401);
});
