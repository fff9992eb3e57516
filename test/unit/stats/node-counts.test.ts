import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { NodeCounts } from '../../../src/stats/node-counts.ts';
import { applicationPlace, streamPlace } from '../../../src/stats/places.ts';
import { addVhost, goLive } from '../../support/server/live.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

test.serial(
  'the row of a stream is made anew when its viewers or sources change, when it is asked for, and at times',
  async (t) => {
    virtualTime(t);
    const registry = new Registry();
    addVhost(registry);
    const counts = new NodeCounts(registry);
    const { input } = goLive(registry, 'app', 's');
    const application = registry.vhost('default').application('app');
    const place = streamPlace(application, 's');
    const next = async (key = place.key) => {
      input.counters.received(1);
      await delay(1000);
      return counts.rows().find((row) => row.key === key);
    };

    t.is((await next())?.counters.in, 1);
    t.is((await next())?.counters.in, 1, 'it stays as it is');
    t.is((await next(applicationPlace(application).key))?.counters.in, 3, 'that of its application does not');
    t.is(counts.row(place)?.counters.in, 3, 'nor what this node answers itself');

    const leave = input.counters.viewer('webrtc');
    t.like(await next(), { counters: { in: 4 }, gauges: { 'publisher.webrtc': 1 } });
    leave();
    t.like(await next(), { counters: { in: 5 }, gauges: { 'publisher.webrtc': undefined } });
    t.is((await next())?.counters.in, 5);
    counts.ask(place.key);
    t.is((await next())?.counters.in, 7);
    t.is((await next())?.counters.in, 7, 'once');
    await delay(300_000);
    t.is((await next())?.counters.in, 9);

    input.counters.received(1);
    input.close('over');
    const last = counts.rows();
    const isOver = { counters: { in: 10 }, gauges: {} };
    t.like(
      last.find(({ key }) => key === place.key),
      isOver,
    );
    t.like(
      counts.rows().find(({ key }) => key === place.key),
      isOver,
      'nobody has said that it was counted',
    );
    counts.counted(last);
    t.is(
      counts.rows().find(({ key }) => key === place.key),
      undefined,
    );
  },
);

test.serial(
  'a stream that comes back goes on with its totals as long as its former row stands in the reports',
  async (t) => {
    virtualTime(t);
    const registry = new Registry();
    addVhost(registry);
    const counts = new NodeCounts(registry);
    const application = registry.vhost('default').application('app');
    registry.on('input', (stream) => counts.begun(application, stream));
    const { key } = streamPlace(application, 's');
    const bytesIn = () => {
      counts.ask(key);
      return counts.rows().find((row) => row.key === key)?.counters.in;
    };
    const first = goLive(registry, 'app', 's').input;
    first.counters.received(100);
    await delay(1000);
    first.close('over');
    const last = counts.rows();
    counts.counted(last);

    // it is not taken out of the store before the next report
    const second = goLive(registry, 'app', 's').input;
    second.counters.received(150);
    t.is(bytesIn(), 250);
    await delay(1000);
    second.close('over');
    counts.counted(counts.rows());
    t.is(bytesIn(), undefined);
    goLive(registry, 'app', 's').input.counters.received(7);
    t.is(bytesIn(), 7, 'what was taken out begins anew');
  },
);
