import { createHash } from 'node:crypto';
import { globSync } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { bundlePackages } from './test/support/runner/packages.ts';
import { filesOfRoom } from './test/support/runner/rooms.ts';

// Each file has a process of its own, which would compile ava, strip the types of all that the file imports and compile
// that anew. It inherits the folder by the environment, as do the programs that tests start.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');
enableCompileCache(process.env.NODE_COMPILE_CACHE);
process.env.KILN_TEST_PACKAGES = await bundlePackages();
const quickImports = `--import=${new URL('test/support/runner/quick-imports.js', import.meta.url)}`;
process.env.NODE_OPTIONS = [process.env.NODE_OPTIONS, quickImports].filter(Boolean).join(' ');

// `<folder>.room.ts` runs the files of its folder in one process, unless some files are asked for
const asksForFiles = process.argv
  .slice(2)
  .some((argument) => !argument.startsWith('-') && !/^test\/\w+\/\*\*$/.test(argument));
const rooms = asksForFiles ? [] : globSync('test/**/*.room.ts', { cwd: import.meta.dirname });
const roomOf = (file) => file.slice('test/'.length, -'.room.ts'.length);

/**
 * Unit tests first: they compute, and those that wait for clients and players come too late beside them. Then the rooms, which take
 * long. Others in any order.
 */
const rank = (file) => {
  const path = file.slice(import.meta.dirname.length);
  const kind = path.startsWith('/test/unit/') ? '0' : path.endsWith('.room.ts') ? '1' : '2';
  return kind + createHash('md5').update(path).digest('hex');
};

export default {
  // Tests wait for most of their time, but those with real clients come too late beside too many. few-at-once.ts limits how many
  // of each file there are.
  concurrency: Math.max(2, availableParallelism()),
  sortTestFiles: (one, other) => (rank(one) < rank(other) ? -1 : 1),
  extensions: ['ts'],
  // Not threads: a program that one of them starts has, until it runs, what all others have open. Ports that a test has
  // closed would accept connections, or not be free, and files could not be run.
  workerThreads: false,
  // the long ones are for `npm run test:all`
  files: [
    'test/**/*.test.ts',
    ...rooms,
    ...rooms.flatMap((file) => filesOfRoom(roomOf(file))).map((file) => `!test/${file}`),
    ...(process.env.KILN_TESTS === 'all' ? [] : ['!test/**/*.long.test.ts']),
  ],
  require: ['./test/support/runner/fail-on-warning.ts', './test/support/runner/no-programs.ts'],
  // a guard against hanging: a test fails by itself when it waits for too long, and this ends the whole run
  timeout: '10m',
};
