import type { FastifyPluginAsync } from 'fastify';
import { loadAssets } from './assets.ts';
import { Pages, wantsPage } from './page.ts';

const ABOUT = {
  message: 'OK',
  response: {
    name: 'Kiln management API',
    api: '/v1',
    console: '/console',
    documentation: '/docs',
    openapi: '/openapi.json',
    authorization: 'Basic, with Managers/API/AccessToken',
  },
  statusCode: 200,
};

/** Answers `/` of the management API's port with a description and the places of its documentation. */
export const apiHomeRoutes: FastifyPluginAsync = async (app) => {
  const pages = new Pages(app, await loadAssets());
  app.get('/', async (request, reply) => {
    reply.header('vary', 'accept');
    if (wantsPage(request)) return pages.send('api.html', request, reply);
    return reply.type('application/json;charset=UTF-8').send(ABOUT);
  });
  // the page itself holds nothing: what it shows it asks the API for, with the token that is typed into it
  app.get('/console', (request, reply) => pages.send('console.html', request, reply));
};
