import test from 'ava';
import { ALL } from './all.ts';

/**
 * `test.serial` for what takes a machine's two cores long: more players, more rounds, rarer faults than the tests beside it.
 * They are skipped unless `npm run test:all` asks for them.
 */
export const long = ALL ? test.serial : test.serial.skip;
