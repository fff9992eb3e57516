import * as module from 'node:module';

/*
 * Loaded before each file of tests (`require` in ava.config.js), and by every Node that tests start: most of what either
 * does at its start is to look for modules. `./x.ts` and `./x.mjs` are where they say and what they say, which Node
 * finds out by several system calls for each; one that is missing fails when it is read. Everything else is Node's.
 */
const FORMATS = { '.ts': 'module-typescript', '.mjs': 'module' };

// npm may have an older Node, without hooks
module.registerHooks?.({
  resolve(specifier, context, next) {
    const format = FORMATS[specifier.slice(specifier.lastIndexOf('.'))];
    const { parentURL } = context;
    if (format === undefined || !/^\.\.?\//.test(specifier) || !parentURL?.startsWith('file:'))
      return next(specifier, context);
    return { url: new URL(specifier, parentURL).href, format, shortCircuit: true };
  },
});

const option = `--import=${import.meta.url}`;
const { NODE_OPTIONS = '' } = process.env;
if (!NODE_OPTIONS.includes(option)) process.env.NODE_OPTIONS = `${NODE_OPTIONS} ${option}`.trim();
