import { mock } from 'node:test';
import test from 'ava';
import { RemotePlayers } from '../../../../../src/publishers/hls/sessions/remote-players.ts';
import { SessionTokens } from '../../../../../src/publishers/hls/answer/token.ts';

test.afterEach.always(() => mock.timers.reset());

test.serial('a player that the owner refuses because its time is over hears so', async (t) => {
  mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 });
  const tokens = new SessionTokens([Buffer.alloc(32, 1)], '#default#app/stream');
  const token = tokens.issue('me', { until: Date.now() + 1000, guarded: true, openings: [] });
  const players = new RemotePlayers({
    tokens,
    guarded: true,
    maxConnection: 0,
    isAway: () => false,
    // its time ends while the report is on its way
    report: async ({ players: reported }) => {
      mock.timers.setTime(Date.now() + 1000);
      return reported.map(() => 'refused');
    },
  });
  await t.throwsAsync(async () => await players.admit(token), { code: 'playlistSessionOver' });
  for (let i = 0; i < 2; i++) t.throws(() => players.admit(token), { code: 'playlistSessionOver' });
  t.throws(() => players.admit(`${token.slice(0, -1)}-`), { code: 'playlistSessionRefused' });
});
