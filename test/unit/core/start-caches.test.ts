import test, { type ExecutionContext } from 'ava';
import { Continuity } from '../../../src/core/continuity.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { StartCaches } from '../../../src/core/start-caches.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { dataTrack, videoPackets, videoTrack } from '../../support/media/packets.ts';
import { until } from '../../support/time/until.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const VIDEO = videoTrack();

function open(t: ExecutionContext) {
  const registry = new Registry();
  addVhost(registry);
  const caches = new StartCaches(registry, 'relayed');
  t.teardown(() => {
    caches.close();
    registry.close('the test is over');
  });
  return { registry, caches, output: (name: string) => goLive(registry, 'app', name, [VIDEO]) };
}

/** Numbers of the frames that are kept. */
const kept = (caches: StartCaches, output: Parameters<StartCaches['of']>[0]): number[] => {
  const times: number[] = [];
  caches.of(output)?.replay(({ dts }) => void times.push(dts / 3000));
  return times;
};

test('a stream without relays is not kept; of a relayed one, everything since the last key frame is', (t) => {
  const { caches, output } = open(t);
  const [one, other] = [output('one'), output('other')];
  const packets = videoPackets(VIDEO, { to: 2, gop: 10 });
  for (const packet of packets.slice(0, 15)) one.write(packet);
  const leave = caches.hold(one);
  t.deepEqual(kept(caches, one), []);
  for (const packet of packets.slice(15, 33)) [one, other].forEach((each) => each.write(packet));
  t.deepEqual(kept(caches, one), [30, 31, 32]);
  t.is(caches.of(other), undefined);
  leave();
  for (const packet of packets.slice(33, 35)) one.write(packet);
  t.deepEqual(kept(caches, one), [30, 31, 32, 33, 34], 'the next relay may come soon');
  one.setTracks([VIDEO, dataTrack()]);
  t.deepEqual(kept(caches, one), [30, 31, 32, 33, 34], 'a track of events changes nothing');
  one.setTracks([videoTrack({ id: 5 })]);
  t.deepEqual(kept(caches, one), []);
  one.input.close('over');
  t.is(caches.of(one), undefined);
});

test.serial('a stream that counts as used is kept as long as it exists', async (t) => {
  virtualTime(t);
  const registry = new Registry();
  addVhost(registry);
  const application = registry.vhost('default').application('app');
  const caches = new StartCaches(registry, 'relayed', ({ name }, of) => name === 'one' && of === application);
  const [one, other] = ['one', 'other'].map((name) => goLive(registry, 'app', name, [VIDEO])) as [
    OutputStream,
    OutputStream,
  ];
  for (const output of [one, other]) application.announce(output);
  caches.hold(one)();
  await new Promise((resolve) => setTimeout(resolve, 60_000));
  for (const packet of videoPackets(VIDEO, { to: 1, gop: 10 }).slice(0, 3)) one.write(packet);
  t.deepEqual(kept(caches, one), [0, 1, 2]);
  t.is(caches.of(other), undefined);
  caches.close();
  registry.close('the test is over');
});

test('a start cache replays from the time that a reader had, or from the last key frame', (t) => {
  const registry = new Registry();
  addVhost(registry);
  const caches = new StartCaches(registry, 'relayed', () => false, 2);
  const one = goLive(registry, 'app', 'one', [VIDEO]);
  caches.hold(one);
  for (const packet of videoPackets(VIDEO, { to: 10, gop: 30 }).slice(0, 250)) one.write(packet);
  const packets = caches.of(one);
  const from = (seconds: number): number | undefined => {
    const numbers: number[] = [];
    packets?.replayFrom(seconds, ({ dts }) => void numbers.push(dts / 3000));
    return numbers[0];
  };
  t.is(from(Infinity), 240);
  t.is(from(7.5), 210);
  t.is(from(6.4), 180);
  t.is(from(1), 180);
  t.deepEqual([packets?.reaches(6.4), packets?.reaches(5.9)], [true, false]);
  packets?.shorten();
  t.is(from(1), 240);
  caches.close();
  registry.close('the test is over');
});

test('a stream that continues a relayed one is kept from the start', (t) => {
  const { registry, caches, output } = open(t);
  const before = output('one');
  output('other');
  caches.hold(before);
  const { kept: inherited } = before.input.continuity;
  const application = registry.vhost('default').application('app');
  const continued = ['one', 'other'].map((name) => {
    const continuity = new Continuity(inherited);
    const input = application.publish(
      name,
      { type: 'Rtmp', kind: 'rtmp' },
      { replace: true, maxConnections: 0, continuity },
    );
    const next = application.addOutput(input, name);
    next.setTracks([VIDEO]);
    application.announce(next);
    return next;
  });
  for (const packet of videoPackets(VIDEO, { to: 0.1 })) continued.forEach((each) => each.write(packet));
  t.deepEqual(
    continued.map((each) => kept(caches, each)),
    [[0, 1, 2], []],
  );
});

test('a start cache ends a while after the last relay', async (t) => {
  virtualTime(t);
  const { caches, output } = open(t);
  const [one, other] = [output('one'), output('other')];
  const leave = [caches.hold(one), caches.hold(one), caches.hold(other)];
  leave[0]?.();
  leave[2]?.();
  caches.hold(other);
  leave[1]?.();
  t.not(caches.of(one), undefined);
  await until('it has ended', () => caches.of(one) === undefined);
  t.not(caches.of(other), undefined);
  t.deepEqual(
    [one, other].map(({ name, input }) => input.continuity.kept.get(`relayed/${name}`)),
    [false, true],
  );
});

test('a node keeps a limited amount of packets: first those of streams without relays go', async (t) => {
  virtualTime(t);
  const { caches, output } = open(t);
  const outputs = Array.from({ length: 45 }, (_, index) => output(`s${index}`));
  const data = Buffer.alloc(6 * 1024 * 1024);
  const leave = outputs.map((each) => caches.hold(each));
  for (const index of [20, 30]) leave[index]?.();
  // the same bytes in all: it is what they count that matters
  for (const each of outputs) each.write({ track: VIDEO, dts: 0, pts: 0, duration: 0, key: true, data });
  await until('some have ended', () => outputs.some((each) => caches.of(each) === undefined));
  const gone = outputs.flatMap((each, index) => (caches.of(each) === undefined ? [index] : []));
  t.deepEqual(gone, [0, 20, 30]);
});
