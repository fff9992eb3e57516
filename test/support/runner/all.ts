/** Whether everything is tested: `npm run test:all`. */
export const ALL = process.env.KILN_TESTS === 'all';
