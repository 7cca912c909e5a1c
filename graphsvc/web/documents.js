// The sidebar's list of the project's own documents: by folder, with what each is for. A click opens its tab.
/* global GraphiQL, React */

import {chinese} from "/graphql/access.js";

export const load = async () => (await fetch("/graphql/documents.json")).json();

export const tab = ({text, variables}) => ({
  query: text, variables: variables === null ? null : JSON.stringify(variables, null, 2), headers: null,
});

export const plugin = (documents) => ({
  title: chinese ? "查询文档" : "Saved documents",
  icon: () => React.createElement("svg", {viewBox: "0 0 20 20", fill: "none", stroke: "currentColor", strokeWidth: 1.5},
    React.createElement("path", {d: "M3 4h14M3 8h14M3 12h9M3 16h9M15 11v6l3-3z", strokeLinejoin: "round"})),
  content: () => React.createElement(List, {documents}),
});

function List({documents}) {
  const {tabs, activeTabIndex, addTab, changeTab, updateActiveTabValues} = GraphiQL.React.useEditorContext({nonNull: true});
  React.useEffect(() => { // more tabs than fit are scrolled
    document.querySelector(".graphiql-tab-active")?.scrollIntoView({inline: "nearest"});
  }, [activeTabIndex]);
  const open = (wanted) => {
    const there = tabs.findIndex((one) => one.query === wanted.text);
    if (there >= 0) return changeTab(there);
    addTab();
    updateActiveTabValues(tab(wanted));
    changeTab(tabs.length); // shows what the new tab holds now
  };
  const item = (one) => React.createElement("li", {key: one.name},
    React.createElement("button", {type: "button", onClick: () => open(one)}, title(one)),
    React.createElement("p", null, one.about));
  const group = ([name, found]) => React.createElement("div", {key: name},
    React.createElement("h2", null, name), React.createElement("ul", null, found.map(item)));
  return React.createElement("section", {className: "graphsvc-documents"}, Object.entries(folders(documents)).map(group));
}

const title = ({name}) => name.split("/").at(-1);

function folders(documents) {
  const found = {};
  for (const one of documents) (found[one.name.split("/").slice(0, -1).join("/")] ??= []).push(one);
  return found;
}
