#!/usr/bin/env bash
# cron-parser 5.10.5: next() can be earlier than the time that it was asked after, and can leave out a day.
#
# Expected: CronExpressionParser.parse(expression, { tz, currentDate }).next() is a time after currentDate, in every time zone.
# In New York it is, and a time that the clock passes over when it is set forward is made up for an hour later (case 1).
# Seen:
# - Chatham (offsets of 12:45 and 13:45): in the hour before the clock is set back, "0 */30 * * * *" and "0 0 * * * *" answer with
#   a time 45 minutes BEFORE currentDate, so a loop that asks again after each answer stays in that hour (cases 2 and 3).
# - Nuuk (the clock is set forward at 23:00) and Lord Howe (by half an hour): what is passed over is not made up for as in
#   New York; two days lie between the answers (cases 4 and 5).
# Who waits for the answer of next() with a timer has to check that it is later, and cannot notice that a day is missing.
set -euo pipefail

version=5.10.5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"private":true}' >package.json
npm install --silent --no-audit --no-fund --ignore-scripts "cron-parser@$version"
cat >cases.mjs <<'END'
import { createRequire } from 'node:module';
import { CronExpressionParser } from 'cron-parser';

const { version } = createRequire(import.meta.url)('cron-parser/package.json');
console.log(`cron-parser ${version}, Node ${process.version}, time zones ${process.versions.tz}`);
const CASES = [
  ['America/New_York', '0 30 2 * * *', '2026-03-07T12:00:00.000Z', '2026-03-08T07:30:00.000Z'],
  ['Pacific/Chatham', '0 */30 * * * *', '2026-04-04T13:00:00.000Z', '2026-04-04T12:15:00.000Z'],
  ['Pacific/Chatham', '0 0 * * * *', '2026-04-04T13:00:00.000Z', '2026-04-04T12:15:00.000Z'],
  ['America/Nuuk', '0 30 23 * * *', '2026-03-28T03:00:00.000Z', '2026-03-30T00:30:00.000Z'],
  ['Australia/Lord_Howe', '0 0 2 * * *', '2026-10-02T15:30:00.000Z', '2026-10-04T15:00:00.000Z'],
];
for (const [tz, expression, after, seen] of CASES) {
  const next = CronExpressionParser.parse(expression, { tz, currentDate: new Date(after) }).next().toISOString();
  console.log(`${tz}: "${expression}" after ${after} is ${next}${next <= after ? ', which is earlier' : ''}`);
  if (next !== seen) process.exitCode = 1;
}
if (process.exitCode) console.log('this is another behaviour than the one described here');
END
node cases.mjs
