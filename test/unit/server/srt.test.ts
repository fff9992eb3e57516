import test from 'ava';
import { pino } from 'pino';
import { SrtError } from '../../../src/protocols/srt/error.ts';
import { SrtMissingError } from '../../../src/protocols/srt/library.ts';
import { whereSrtIs } from '../../../src/server/srt.ts';

test('a server without libsrt names its package in the log, and all else goes on; other faults rise', async (t) => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const failing = (error: Error) =>
    whereSrtIs(log, async () => {
      throw error;
    });
  t.is(await failing(new SrtMissingError('install libsrt1.5-gnutls')), undefined);
  t.is(lines.length, 1);
  t.regex(lines[0] ?? '', /"level":50.*install libsrt1\.5-gnutls; SRT is off/);
  await t.throwsAsync(failing(new SrtError('the port is taken')), { message: 'the port is taken' });
  t.is(await whereSrtIs(log, async () => 'open'), 'open');
});
