import test from 'ava';

/** What files of a room import as `ava`: tests that others of their process neither delay nor see, in times that they replace. */
export default Object.assign((...args: Parameters<typeof test.serial>) => test.serial(...args), {
  serial: test.serial,
});
