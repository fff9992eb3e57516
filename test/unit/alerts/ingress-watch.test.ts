import { setTimeout as delay } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { IngressWatch } from '../../../src/alerts/ingress-watch.ts';
import type { IngressRules } from '../../../src/alerts/ingress-rules.ts';
import { Registry } from '../../../src/core/registry.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';
import { RTMP, VIDEO, vhostConfig, video } from '../core/support.ts';

const APPLICATIONS = [{ name: 'app', type: 'live' }];
const RULES: IngressRules = { streamStatus: false, longKeyFrameInterval: true, hasBFrames: false, minFramerate: 20 };
const FRAME_MS = 40;

/** A live stream whose frames a test writes, and the alerts that are raised: codes, or `resolved`. */
function open(t: ExecutionContext) {
  virtualTime(t);
  const registry = new Registry();
  registry.createVhost(vhostConfig({ name: 'default', host: { names: ['*'] }, applications: APPLICATIONS }), true);
  const raised: string[] = [];
  registry.on('alert', ({ messages, name, resolved, type }) => {
    t.is(type, 'INGRESS');
    raised.push(`${name} ${resolved === true ? 'resolved ' : ''}${messages.map(({ code }) => code).join()}`);
  });
  const settings = { rules: RULES as IngressRules | undefined };
  const watch = new IngressWatch(registry, () => settings.rules);
  t.teardown(() => watch.close());
  const application = registry.vhost('default').application('app');
  const input = application.publish('live', RTMP, { replace: false, maxConnections: 0 });
  input.setTracks([VIDEO]);
  let frame = 0;
  /** Writes so many frames at 25 a second; the first one is a key frame, and each `gop`th after it. */
  const write = async (frames: number, gop = 25): Promise<void> => {
    for (let n = 0; n < frames; n++, frame++) {
      input.write(video((frame * FRAME_MS) / 1000, n % gop === 0));
      await delay(FRAME_MS);
    }
  };
  return { registry, input, write, raised, settings };
}

test.serial('a stream that keeps the rules is not spoken of', async (t) => {
  const { write, raised } = open(t);
  await write(250);
  t.deepEqual(raised, []);
});

test.serial('a publisher that sends nothing any more has a low frame rate, and is reported once', async (t) => {
  const { write, raised } = open(t);
  await write(150);
  await delay(20_000);
  t.deepEqual(raised, ['live INGRESS_FRAMERATE_LOW']);
  await write(250);
  t.is(raised.length, 1, 'rates vary');
  await write(750);
  t.deepEqual(raised, ['live INGRESS_FRAMERATE_LOW', 'live resolved OK']);
});

test.serial('a short pause of a publisher breaks no rule', async (t) => {
  const { write, raised } = open(t);
  await write(120);
  await delay(1000);
  await write(250);
  t.deepEqual(raised, []);
});

test.serial('a rate that varies around its limit raises one alert', async (t) => {
  const { write, raised } = open(t);
  for (let n = 0; n < 10; n++) {
    await write(150);
    await delay(8000);
  }
  t.deepEqual(raised, ['live INGRESS_FRAMERATE_LOW']);
});

test.serial('a rule that breaks later is reported together with those that were broken before', async (t) => {
  const { write, raised, settings } = open(t);
  await write(500, 1000);
  t.deepEqual(raised, ['live INGRESS_LONG_KEY_FRAME_INTERVAL']);
  settings.rules = { ...RULES, minWidth: 1920 };
  await write(150, 1000);
  t.deepEqual(raised.slice(1), ['live INGRESS_LONG_KEY_FRAME_INTERVAL,INGRESS_WIDTH_SMALL']);
  settings.rules = undefined;
  await write(900);
  t.deepEqual(raised.slice(2), ['live resolved OK']);
});

test.serial('nothing is raised after the end of a stream', async (t) => {
  const { input, write, raised } = open(t);
  await write(150);
  input.close('the publisher left');
  await delay(10_000);
  t.deepEqual(raised, []);
});
