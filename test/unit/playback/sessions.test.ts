import { setTimeout as delay } from 'node:timers/promises';
import { Revocations } from '../../../src/access/revocations.ts';
import test, { type ExecutionContext } from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import { PlaybackSessions } from '../../../src/playback/sessions.ts';
import { createVhost } from '../../support/api/api.ts';
import { linkedNodes } from '../../support/cluster/linked-nodes.ts';
import { virtualTime } from '../../support/time/virtual-time.ts';

const MINUTE = 60_000;
const CLIP = 'stream/0-1000';

/** Nodes `a` and `b`, each with an application `app`. */
function open(t: ExecutionContext, vhost: object = {}) {
  virtualTime(t);
  const lost = new Set<string>();
  return linkedNodes('a', 'b').map(({ self, calls }) => {
    const registry = new Registry();
    const applications = [{ name: 'app', type: 'live', publishers: { playback: {} } }];
    createVhost(registry, { name: 'default', host: { names: ['*'] }, applications, ...vhost });
    const ends: string[] = [];
    const closes: ((reason: string) => void)[] = [];
    const grant = (id?: string) => {
      let openings = id === undefined ? [] : [{ id, vhost: 'default' }];
      return {
        until: undefined,
        get openings() {
          return openings;
        },
        onRevoked: (close: (reason: string) => void) => void closes.push(close),
        end: (reason: string) => {
          ends.push(...openings.map((one) => `${one.id}: ${reason}`));
          openings = [];
        },
        handOver: () => ({ openings: [] }),
      };
    };
    const nodes = () =>
      ['a', 'b'].map((id) => ({ id, incarnation: `of ${id}`, state: lost.has(id) ? 'lost' : 'alive' }));
    const sessions = new PlaybackSessions({
      registry,
      cluster: { self, nodes: nodes as never },
      calls,
      access: { resume: (_until, [opening]) => grant(opening?.id) as never, revocations: new Revocations() },
      tokenKeys: [Buffer.alloc(32)],
    });
    t.teardown(() => {
      sessions.close();
      registry.close('the test is over');
    });
    const application = registry.vhost('default').application('app');
    const { publishers } = application.counters;
    return {
      ...{ sessions, application, ends, lost, grant, closes },
      viewers: () => publishers.playback,
      sessionsOf: (stream: string) => application.recordingViewers.of(stream),
      begin: (terms: { until?: number; guarded?: boolean } = {}, opening?: string) => {
        const openings = opening === undefined ? [] : [{ id: opening, vhost: 'default' }];
        return sessions.begin(application, CLIP, 'id', { guarded: false, openings, ...terms }, grant(opening));
      },
      admit: (token: string, clip = CLIP) => sessions.admit(application, clip, token),
    };
  });
}

type Node = ReturnType<typeof open>[number];

test('a player is counted until it has been silent', async (t) => {
  const [a] = open(t) as [Node];
  const token = a.begin({}, 'opened');
  t.is(a.viewers(), 1);
  await delay(4 * MINUTE);
  a.admit(token);
  await delay(4 * MINUTE);
  t.deepEqual([a.viewers(), a.ends], [1, []]);
  await delay(2 * MINUTE);
  t.is(a.viewers(), 0);
  t.deepEqual(a.ends, ['opened: the player asks for nothing any more']);
  t.throws(() => a.admit(token), { code: 'playlistSessionRefused' });
});

test('a player that is not allowed any more is refused from then on', (t) => {
  const [a] = open(t) as [Node];
  const token = a.begin({}, 'opened');
  a.closes[0]?.('not paid');
  t.deepEqual([a.viewers(), a.ends], [0, ['opened: not paid']]);
  t.throws(() => a.admit(token), { code: 'playlistSessionRefused' });
});

test('a player that nobody was asked about may come back', async (t) => {
  const [a] = open(t) as [Node];
  const token = a.begin();
  await delay(6 * MINUTE);
  t.is(a.viewers(), 0);
  a.admit(token);
  t.is(a.viewers(), 1);
});

test('a token holds for its clip and its time', async (t) => {
  const [a] = open(t) as [Node];
  const token = a.begin({ until: Date.now() + MINUTE });
  for (const clip of ['stream/0-1001', 'other/0-1000', ''])
    t.throws(() => a.admit(token, clip), { code: 'playlistSessionRefused' });
  t.throws(() => a.admit('AAAA'), { code: 'playlistSessionRefused' });
  await delay(MINUTE + 1);
  t.throws(() => a.admit(token), { code: 'playlistSessionOver' });
  await delay(10_000);
  t.is(a.viewers(), 0);
  t.throws(() => a.admit(token), { code: 'playlistSessionOver' });
});

test('where access is controlled, only tokens of admitted players count', (t) => {
  const signedPolicy = {
    ...{ policyQueryKeyName: 'p', signatureQueryKeyName: 's', secretKey: 'k' },
    enables: { publishers: 'playback' },
  };
  const [a, b] = open(t, { signedPolicy }) as [Node, Node];
  t.throws(() => b.admit(a.begin({ guarded: false })), { code: 'playlistSessionRefused' });
  t.notThrows(() => b.admit(a.begin({ guarded: true })));
});

test('the node that issued a token counts its player, wherever that goes', async (t) => {
  const [a, b] = open(t) as [Node, Node];
  const token = a.begin({}, 'opened');
  for (let minute = 0; minute < 20; minute++) {
    b.admit(token);
    await delay(MINUTE);
  }
  t.deepEqual([a.viewers(), b.viewers(), a.ends], [1, 0, []]);
  await delay(10 * MINUTE);
  t.deepEqual([a.viewers(), a.ends.length], [0, 1]);
});

test('a node counts the players of a lost one, and ends what was opened for them', async (t) => {
  const [a, b] = open(t) as [Node, Node];
  const token = a.begin({}, 'opened');
  a.lost.add('a');
  b.admit(token);
  t.is(b.viewers(), 1);
  await delay(6 * MINUTE);
  t.deepEqual([b.viewers(), b.ends], [0, ['opened: the player asks for nothing any more']]);
});

test('what was opened is closed when the server stops, once', (t) => {
  const [a] = open(t) as [Node];
  a.begin({}, 'one');
  a.begin({}, 'two');
  a.sessions.close();
  a.sessions.close();
  t.deepEqual(a.ends, ['one: the server is stopping', 'two: the server is stopping']);
  t.is(a.viewers(), 0);
});

test('a player is listed under its stream, with what it was sent, and stays out when it is ended', async (t) => {
  const [a, b] = open(t) as [Node, Node];
  const token = a.begin({}, 'opened');
  a.admit(token)?.add(1000, Date.now());
  t.is(b.admit(token), undefined);
  const [session, ...more] = a.sessionsOf('stream');
  t.like(session, { id: 'id', kind: 'playback', out: { totalBytes: 1000 } });
  t.deepEqual([more, a.sessionsOf('other'), b.sessionsOf('stream')], [[], [], []]);
  session?.kick();
  t.deepEqual([a.viewers(), a.sessionsOf('stream')], [0, []]);
  t.deepEqual(a.ends, ['opened: the session was ended by the server']);
  t.throws(() => a.admit(token), { code: 'sessionRefused' });
  t.throws(() => a.begin(), { code: 'sessionRefused' });
  b.application.recordingViewers.keepOut('stream', 'id');
  t.throws(() => b.admit(token), { code: 'sessionRefused' });
});
