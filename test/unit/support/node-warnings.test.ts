import test from 'ava';
import { refuseWarnings } from '../../support/programs/node-warnings.ts';

test('a warning of Node among the lines of a log is found', (t) => {
  const log = '{"level":30,"msg":"(node:1) is a text"}\n';
  t.notThrows(() => refuseWarnings(log));
  const warning = '(node:312) MaxListenersExceededWarning: Possible EventEmitter memory leak detected.';
  t.throws(() => refuseWarnings(`${log}${warning}\n(Use \`node --trace-warnings ...\`)\n${log}`), {
    message: `the server got warnings of Node: ${warning}`,
  });
});
