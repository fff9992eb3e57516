import { mock } from 'node:test';
import test, { type ExecutionContext } from 'ava';
import { pino } from 'pino';
import { Starting, type StartingElsewhere } from '../../../src/access/starting.ts';
import type { Application } from '../../../src/core/application.ts';
import { WaitingOfOne } from '../../../src/access/waiting-of-one.ts';
import { Registry } from '../../../src/core/registry.ts';
import type { InputStream } from '../../../src/core/input-stream.ts';
import { CodecInventory } from '../../../src/transcode/codecs.ts';
import { attachOutputs } from '../../../src/transcode/outputs.ts';
import { CLIENT, playRequest } from '../../support/access/access.ts';
import { createVhost } from '../../support/api/api.ts';
import { VIDEO } from '../../support/server/live.ts';

const PROFILE = {
  name: 'low',
  outputStreamName: '${OriginStreamName}_low',
  encodes: { videos: [{ name: 'v', bypass: true }], audios: [{ name: 'a', bypass: true }] },
};

test.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
test.afterEach.always(() => mock.timers.reset());

/** Another node that puts out what `remote` says. */
function open(t: ExecutionContext, { webhook = false } = {}) {
  const registry = new Registry();
  createVhost(registry, {
    name: 'default',
    host: { names: ['*'] },
    applications: [
      {
        name: 'app',
        type: 'live',
        outputProfiles: { outputProfile: [PROFILE] },
        ...(webhook && {
          transcodeWebhook: { enable: true, controlServerUrl: 'http://127.0.0.1:9/', timeout: 1000 },
        }),
      },
    ],
  });
  const application = registry.vhost('default').application('app');
  const remote = { known: new Set<string>(), starting: new Set<string>(), tell: (): void => {} };
  const asked: string[] = [];
  const elsewhere: StartingElsewhere = {
    isStarting: (_application, name) => {
      asked.push(name);
      return remote.starting.has(name);
    },
    known: (_application, name) => (remote.known.has(name) ? {} : undefined),
    listen: (listener) => {
      remote.tell = () => listener({ vhost: 'default', app: 'app' });
      return () => {};
    },
  };
  const starting = new Starting(registry, elsewhere, new WaitingOfOne());
  t.teardown(() => {
    starting.close();
    registry.close('the test is over');
  });
  const wait = (name: string, more = {}) => starting.wait(application, name, playRequest(more));
  return { registry, application, remote, asked, starting, wait };
}

function publish(application: Application, name = 'stream'): InputStream {
  return application.publish(name, { type: 'Rtmp', kind: 'rtmp' }, { replace: false, maxConnections: 0 });
}

function putOut(application: Application, input: InputStream, name: string): void {
  const output = application.addOutput(input, name);
  output.setTracks([VIDEO]);
  application.announce(output);
}

test.serial('a stream that is not starting, or there already, is not waited for', (t) => {
  const { application, wait } = open(t);
  t.is(wait('nothing'), false);
  const input = publish(application);
  t.is(wait('nothing'), false, 'no output of it is called so');
  putOut(application, input, 'stream_low');
  t.is(wait('stream_low'), true);
});

test.serial(
  'viewers that ask before the tracks are known, and before encoders are ready, are notified when it is announced',
  async (t) => {
    const { application, starting, wait } = open(t);
    const input = publish(application);
    const early = wait('stream_low');
    const output = application.addOutput(input, 'stream_low');
    application.outputsMade(input);
    const late = wait('stream_low');
    t.is(starting.waiting, 2);
    output.setTracks([VIDEO]);
    application.announce(output);
    t.deepEqual(await Promise.all([early, late]), [true, true]);
    t.is(starting.waiting, 0);
  },
);

test.serial('ten seconds, and no longer', async (t) => {
  const { application, starting, wait } = open(t);
  publish(application);
  const waited = wait('stream_low');
  mock.timers.tick(9999);
  t.is(starting.waiting, 1);
  mock.timers.tick(1);
  t.false(await waited);
});

test.serial(
  'the wait for a starting stream ends at once when the publisher leaves, when no output is to come, and when the application goes',
  async (t) => {
    const { application, wait } = open(t);
    const leaving = publish(application);
    const one = wait('stream_low');
    leaving.close('it left');
    t.false(await one);
    const barren = publish(application);
    const two = wait('stream_low');
    application.outputsMade(barren);
    t.false(await two);
    publish(application, 'other');
    const three = wait('other_low');
    application.close('it is deleted');
    t.false(await three);
  },
);

test.serial('an output that is announced without tracks is not waited for', (t) => {
  const { application, wait } = open(t);
  const output = application.addOutput(publish(application), 'stream_low');
  application.announce(output);
  t.is(wait('stream_low'), false);
});

test.serial('a client that goes away is let go of', async (t) => {
  const { application, starting, wait } = open(t);
  publish(application);
  const gone = new AbortController();
  const waited = wait('stream_low', { signal: gone.signal });
  gone.abort();
  await t.throwsAsync(async () => await waited, { code: 'clientGone' });
  t.is(starting.waiting, 0);
  t.throws(() => wait('stream_low', { signal: gone.signal }), { code: 'clientGone' });
});

test.serial('the number of waiting viewers of one address is limited, and others wait all the same', (t) => {
  const { application, starting, wait } = open(t);
  publish(application);
  for (let i = 0; i < 256; i++) void wait('stream_low');
  t.throws(() => wait('stream_low'), { code: 'tooManyWaiting' });
  void wait('stream_low', { client: { ...CLIENT, realAddress: '192.0.2.9' } });
  t.is(starting.waiting, 257);
  for (let i = 0; starting.waiting < 10_000; i++)
    void wait('stream_low', { client: { ...CLIENT, realAddress: `10.0.${i >> 8}.${i & 255}` } });
  t.throws(() => wait('stream_low', { client: { ...CLIENT, realAddress: '192.0.2.10' } }), { code: 'tooManyWaiting' });
});

test.serial('changes are looked at once for each name, however many wait for it', async (t) => {
  const { remote, asked, starting, wait } = open(t);
  remote.starting.add('one').add('two');
  for (let i = 0; i < 100; i++) for (const name of ['one', 'two']) void wait(name);
  t.is(starting.waiting, 200);
  asked.length = 0;
  for (let i = 0; i < 100; i++) remote.tell();
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(asked, ['one', 'two']);
  t.is(starting.waiting, 200);
});

test.serial('a stream that another node is about to start is waited for, too', async (t) => {
  const { remote, wait } = open(t);
  remote.starting.add('far');
  const came = wait('far');
  remote.tell();
  remote.known.add('far');
  remote.tell();
  t.true(await came);
  remote.known.clear();
  const left = wait('far');
  remote.starting.clear();
  remote.tell();
  t.false(await left);
});

test.serial(
  'names that a control server decides on: any that holds the name of the input, until it has answered',
  async (t) => {
    const { registry, application, wait } = open(t, { webhook: true });
    const log = pino({ level: 'silent' });
    const inventory = new CodecInventory({ log });
    registry.on('input', (input) => attachOutputs(input, application, { log, inventory, folder: '.' }));
    const input = publish(application);
    input.setTracks([VIDEO]);
    const held = wait('stream_of_the_server');
    t.true(held instanceof Promise);
    t.is(wait('another'), false);
    // nobody answers there: there is no output stream, or there are those of the configuration
    t.false(await held);
  },
);
