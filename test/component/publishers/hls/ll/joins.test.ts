import test from 'ava';
import { launchBrowser } from '../../../../support/hls/browser.ts';
import { encode } from '../../../../support/rtmp/flv-source.ts';
import { openLlhls } from '../../../../support/hls/llhls.ts';
import { long } from '../../../../support/runner/long.ts';
import { PlayerPage } from '../../../../support/hls/player-page.ts';
import { mediaTime } from '../../../../support/media/segmenter.ts';
import { until } from '../../../../support/time/until.ts';

const CHUNK = 0.5;
/** What comes after a player has joined, in seconds. */
const MORE = 3;
/** How far a player may be behind the end of what came: with the last part it may wait for the one after it. */
const BEHIND = 3 * CHUNK;
/** Until when audio and video are buffered, in seconds. */
const BUFFERED =
  '(({ buffered }) => (buffered.length > 0 ? buffered.end(buffered.length - 1) : 0))(document.querySelector("video"))';
const browser = await launchBrowser();
test.after.always(() => browser.close());

/** What an encoder sends in its first seconds, with key frames so many frames apart. */
const source = (gop: number) =>
  encode([
    ...['-f', 'lavfi', '-i', 'testsrc2=size=160x90:rate=30'],
    ...['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000', '-c:a', 'aac'],
    ...['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-pix_fmt', 'yuv420p'],
    ...['-g', `${gop}`, '-sc_threshold', '0', '-t', '16'],
  ]);

for (const [gop, times] of Object.entries({
  30: [1.6, 2.1, 2.6, 3.1, 4.6, 5.6, 7.6, 10.1, 12.6],
  60: [2.6, 3.1, 4.1, 4.6, 6.1, 8.6],
})) {
  (gop === '30' ? test.serial : long)(
    `hls.js plays the newest parts of a young stream whenever it joins: key frames each ${gop} frames`,
    async (t) => {
      const llhls = { chunkDuration: CHUNK, segmentDuration: 6, segmentCount: 10 };
      const server = await openLlhls(t, { llhls });
      server.app.get('/', (_request, reply) => reply.type('text/html').send('<!doctype html>'));
      const origin = await server.app.listen({ port: 0, host: '127.0.0.1' });
      const { tracks, packets } = source(Number(gop));
      for (const time of times) {
        const name = `after-${time}`;
        const { input, output } = server.goLive(tracks, name);
        const begun = Date.now() - (time + MORE) * 1000;
        let at = 0;
        const goOn = (to: number): void => {
          for (const packet of packets) {
            const seconds = mediaTime(packet);
            if (seconds < at || seconds >= to) continue;
            input.arrival.note(packet, begun + seconds * 1000);
            output.write(packet);
          }
          at = to;
        };
        goOn(time);
        const player = await PlayerPage.open(browser, 'hls', origin);
        await player.play(`${origin}/app/${name}/llhls.m3u8`);
        const buffered = (): Promise<number> => player.page.evaluate(BUFFERED);
        await until('it has begun', async () => (await buffered()) > 0);
        // as soon as each has been seen
        for (let to = time; to < time + MORE; to += CHUNK) {
          const list = player.page.waitForResponse(/chunklist_.*_HLS_msn/);
          goOn(to + CHUNK);
          await list;
        }
        // one that hears nothing new for long begins anew, and is at the end of the stream then
        let begunAnew = false;
        player.page.on('request', (request) => (begunAnew ||= /chunklist_[^?]*$/.test(request.url())));
        const end = await until('it has what came', async () => {
          const there = await buffered();
          return (there > at - BEHIND || begunAnew) && there;
        });
        t.true(end > at - BEHIND, `joined after ${time} s, it has ${end} s of ${at}`);
        await player.page.close();
      }
    },
  );
}
