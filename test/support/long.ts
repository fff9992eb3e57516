import test from 'ava';

/** Whether everything is tested: `npm run test:all`. */
export const ALL = process.env.KILN_TESTS === 'all';

/**
 * `test.serial` for what takes a machine's two cores long: more players, more rounds, rarer faults than the tests beside it.
 * They are skipped unless `npm run test:all` asks for them.
 */
export const long = ALL ? test.serial : test.serial.skip;
