import { fileURLToPath } from 'node:url';
import test from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { Matrix } from '../support/matrix/matrix.ts';
import { LEAST_SECONDS, PLAYERS, playersOf } from '../support/matrix/players.ts';

const SCRIPT = fileURLToPath(new URL('../support/webrtc/whip-publisher.js', import.meta.url));
/** Of the fake camera, what Chromium sends at least of its 30 a second while a machine is busy. */
const PICTURES_PER_SECOND = 4;

test('a stream that Chromium publishes by WHIP is decoded by every player', async (t) => {
  t.timeout(300_000);
  // Chromium sends a key frame when it is asked to, every three seconds: segments are longer than configured
  const matrix = await Matrix.open();
  t.teardown(() => matrix.close());
  const { kiln } = matrix;
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  const page = await browser.newPage({ bypassCSP: true });
  await page.goto(kiln.httpUrl('/'));
  await page.addScriptTag({ path: SCRIPT });
  await page.evaluate(
    `publishWhip('${kiln.httpUrl('/app/chromium?direction=whip')}', { codec: 'H264', width: 320, height: 180 })`,
  );
  const { input } = await kiln.liveStream('chromium');
  t.deepEqual(
    input.tracks.map(({ video, audio }) => (video ?? audio)?.codec),
    ['H264', 'OPUS'],
  );
  const failures: string[] = [];
  // one after the other: what encodes needs most of the machine
  for (const player of playersOf('H264+OPUS')) {
    try {
      for (const { pictures, keyFrames, sound } of await PLAYERS[player].watch({
        kiln,
        stream: 'chromium',
        video: 'H264',
        audio: 'OPUS',
      })) {
        t.log(`${player}: ${pictures} pictures, ${keyFrames} key frames, ${sound} s of sound`);
        t.true(pictures >= LEAST_SECONDS * PICTURES_PER_SECOND && keyFrames > 0 && sound >= LEAST_SECONDS, player);
      }
    } catch (error) {
      failures.push(`${player}: ${(error as Error).message}`);
    }
  }
  t.deepEqual(failures, []);
});
