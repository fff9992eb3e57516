import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { described, setUpRtspIngest } from '../../../support/rtsp/rtsp-ingest.ts';
import { virtualTime } from '../../../support/time/virtual-time.ts';

test.serial('audio by a slow clock without reports stays with the video, and an alert is raised', async (t) => {
  virtualTime(t);
  const { send, packets, troubles } = setUpRtspIngest(t, [
    described('video', 96, 'VP8'),
    described('audio', 8, 'PCMA', { clockRate: 8000 }),
  ]);
  // a key frame of 16 x 16 (RFC 6386 section 9.1) behind the descriptor that begins a frame
  const picture = Buffer.from('101002009d012a10001000000000', 'hex');
  for (let at = 0; at < 150_000; at += 100) {
    send(0, at * 90, picture);
    send(1, Math.round(at * 8 * 0.98), Buffer.alloc(784, 0xd5));
    await delay(100);
  }
  const last = (type: string) => packets.findLast(({ track }) => track.type === type);
  const [video, audio] = [last('video'), last('audio')];
  const apart = (video?.dts ?? NaN) / 90_000 - (audio?.dts ?? NaN) / 8000;
  t.true(Math.abs(apart) < 0.4, `${apart} s apart`);
  t.true(packets.filter(({ track }) => track.type === 'audio').length > 1480);
  t.deepEqual(troubles, ['INGRESS_CLOCK_DRIFT']);
});
