import test from 'ava';
import { releaseChangelog } from '../../../deploy/changelog.ts';
import { read } from './support.ts';

const EARLIER = `
## [0.1.0] - 2026-11-23

The first version.

### Added

- Everything.

[Unreleased]: #unreleased
[0.1.0]: #010---2026-11-23
`;

const changelog = (unreleased: string) => `# Changelog\n\n## [Unreleased]\n${unreleased}${EARLIER}`;

test('unreleased changes are moved below the version, and empty groups stay above', (t) => {
  const before = changelog(
    '\nIn short.\n\n### Added\n\n- One, [here](docs/play.md)\n  and there.\n\n### Changed\n\n### Removed\n\n- Two.\n',
  );
  t.is(
    releaseChangelog(before, '0.2.0', '2026-11-29'),
    `# Changelog

## [Unreleased]

### Added

### Changed

### Fixed

## [0.2.0] - 2026-11-29

In short.

### Added

- One, [here](docs/play.md)
  and there.

### Removed

- Two.
${EARLIER.replace('[0.1.0]:', '[0.2.0]: #020---2026-11-29\n[0.1.0]:')}`,
  );
});

test('a release takes what follows the one before', (t) => {
  const first = releaseChangelog(changelog('\n### Fixed\n\n- One.\n'), '0.2.0', '2026-11-29');
  const second = releaseChangelog(first.replace('### Fixed\n', '### Fixed\n\n- Two.\n'), '0.2.1', '2026-12-01');
  t.regex(
    second,
    /## \[0\.2\.1\] - 2026-12-01\n\n### Fixed\n\n- Two\.\n\n## \[0\.2\.0\] - 2026-11-29\n\n### Fixed\n\n- One\.\n/,
  );
  t.regex(second, /\[Unreleased\]: #unreleased\n\[0\.2\.1\]: #021---2026-12-01\n\[0\.2\.0\]: #020---2026-11-29\n/);
});

test('a changelog without changes, with a heading for the version, or without a heading is rejected by name', (t) => {
  const refused = (text: string, version = '0.2.0') =>
    t.throws(() => releaseChangelog(text, version, '2026-11-29'))?.message ?? '';
  for (const empty of ['', '\n### Added\n\n### Fixed\n', '\nOnly words.\n'])
    t.is(refused(changelog(empty)), 'CHANGELOG.md has nothing below "## [Unreleased]"');
  t.is(refused(changelog('\n### Added\n\n- One.\n'), '0.1.0'), 'CHANGELOG.md has a heading for 0.1.0 already');
  t.is(refused(EARLIER), 'CHANGELOG.md has no "## [Unreleased]" above an earlier version');
});

test('the changelog of this tree has a heading for what is not released', (t) => {
  t.regex(read('CHANGELOG.md'), /\n## \[Unreleased\]\n[^]*\n## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}\n/);
});
