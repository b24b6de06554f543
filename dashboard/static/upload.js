// Sends the file of a form as the body of a PUT, which no form can do, and shows how far it is.
"use strict";

for (const form of document.querySelectorAll("form[data-then]")) {
  form.querySelector("button").disabled = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    if (file) send(form, file);
  });
}

function send(form, file) {
  const bar = form.querySelector("progress");
  const said = form.querySelector("output");
  const button = form.querySelector("button");
  const request = new XMLHttpRequest();
  const stay = (event) => event.preventDefault();
  button.disabled = true;
  bar.hidden = false;
  addEventListener("beforeunload", stay);
  request.upload.addEventListener("progress", (event) => {
    bar.value = (100 * event.loaded) / (event.total || 1);
    said.textContent = `${Math.floor(bar.value)} %`;
  });
  request.addEventListener("load", () => {
    removeEventListener("beforeunload", stay);
    // 201: taken, or refused by the API, which the page says.
    if ([201, 303, 401].includes(request.status)) location.assign(form.dataset.then);
    else fail(`The file was not taken (${request.status}).`);
  });
  request.addEventListener("error", () => fail("The connection broke off."));
  const fail = (text) => {
    removeEventListener("beforeunload", stay);
    said.textContent = text;
    button.disabled = false;
    bar.hidden = true;
  };
  request.open("PUT", form.action);
  request.setRequestHeader("Content-Type", "application/octet-stream");
  request.setRequestHeader("X-CSRF-Token", form.querySelector("input[name=csrf]").value);
  request.send(file);
}
