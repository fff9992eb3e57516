import test from 'ava';
import { Registry } from '../../../../src/core/registry.ts';
import { MessageType } from '../../../../src/protocols/rtmp/message.ts';
import { FlvFeed } from '../../../../src/publishers/flv/feed.ts';
import { addVhost, AUDIO, goLive, VIDEO } from '../../../support/server/live.ts';

test('audio that is earlier than the first key frame is left out, and does not pile up at its time', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const output = goLive(registry, 'app', 'talk');
  const times: number[] = [];
  const feed = new FlvFeed(output, {
    kind: 'rtmp',
    choose: () => [VIDEO, AUDIO] as never,
    frame: (type, time) => {
      if (type === MessageType.Audio) times.push(time);
      return Buffer.of(type);
    },
    delayMs: 0,
    start: undefined,
    onEnd: () => {},
  });
  const data = Buffer.alloc(10);
  output.write({ track: VIDEO, dts: 90_000, pts: 90_000, duration: 3000, key: true, data });
  // audio comes 100 ms behind the video
  for (let dts = 43_200; dts < 52_000; dts += 1024)
    output.write({ track: AUDIO, dts, pts: dts, duration: 1024, key: true, data });
  t.is(times.length, 4);
  t.true(
    times.every((time, i) => time >= 0 && (i === 0 || time > (times[i - 1] ?? 0))),
    `${times}`,
  );
  feed.close('the test is over');
  registry.close('the test is over');
});
