import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { KeyFrameWatch } from '../../../src/alerts/key-frame-watch.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { Registry } from '../../../src/core/registry.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';
import { RTMP, VIDEO, vhostConfig, video } from '../core/support.ts';

const FRAME_MS = 40;

/** A live stream whose frames a test writes, and the alerts that are raised. */
function open(t: ExecutionContext) {
  virtualTime(t);
  const registry = new Registry();
  const applications = [{ name: 'app', type: 'live' }];
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications }), true);
  const raised: string[] = [];
  registry.on('alert', ({ messages, resolved, type }) =>
    raised.push(`${type}${resolved === true ? ' resolved' : ''} ${messages.map(({ code }) => code).join()}`),
  );
  const watch = new KeyFrameWatch(registry);
  t.teardown(() => watch.close());
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  let frame = 0;
  /** Some seconds of frames, 25 each, with a key frame of a kind at the beginning of each second. */
  const write = async (seconds: number, key: Packet['key']): Promise<void> => {
    for (let n = 0; n < seconds * 25; n++, frame++) {
      input.write({ ...video((frame * FRAME_MS) / 1000, false), key: n % 25 === 0 && key });
      await delay(FRAME_MS);
    }
  };
  return { input, write, raised };
}

test.serial('a stream without key frames is reported within seconds, and so is one that comes', async (t) => {
  const { write, raised, input } = open(t);
  await write(3, false);
  t.deepEqual(raised, []);
  await write(6, false);
  t.deepEqual(raised, ['INGRESS INGRESS_NO_KEY_FRAME']);
  t.is(input.measured(0)?.keyFrames, 'none');
  await write(3, true);
  t.deepEqual(raised, ['INGRESS INGRESS_NO_KEY_FRAME', 'INGRESS resolved OK']);
});

test.serial('open GOPs are reported once, and so is the end of the stream', async (t) => {
  const { write, raised, input } = open(t);
  await write(20, 'open');
  t.deepEqual(raised, ['INGRESS INGRESS_OPEN_GOP']);
  t.is(input.measured(0)?.keyFrames, 'open');
  input.close('over');
  t.deepEqual(raised, ['INGRESS INGRESS_OPEN_GOP', 'INGRESS resolved OK']);
});

test.serial('a stream of IDR pictures is not spoken of', async (t) => {
  const { write, raised, input } = open(t);
  await write(10, true);
  input.close('over');
  t.deepEqual(raised, []);
});
